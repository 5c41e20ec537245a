package mutant

// The files of the query service that mutants change.
const (
	serveBounds   = "serve/bounds.go"
	serveBucket   = "serve/bucket.go"
	serveCall     = "serve/call.go"
	serveFollow   = "serve/follow.go"
	serveGaps     = "serve/gaps.go"
	serveGather   = "serve/gather.go"
	serveKey      = "serve/key.go"
	serveListen   = "serve/listen.go"
	serveMultiGet = "serve/multiget.go"
	serveReadPage = "serve/readpage.go"
	serveRoute    = "serve/route.go"
	serveRows     = "serve/rows.go"
	serveSlots    = "serve/slots.go"
	serveWatch    = "serve/watch.go"
)

// Serving returns the mutants of the query service: routing, pages, watches and limits. Each names ordinary tests, all of which
// must fail.
func Serving() []Mutant {
	return append(append(routing(), paging()...), append(watching(), limiting()...)...)
}

func routing() []Mutant {
	return []Mutant{
		{Name: "stale-map", What: "the map of the first attempt is trusted after the task has moved", Edits: []Edit{
			{serveCall, "\thop      bool\n", "\thop      bool\n\tbelieved *query.Map\n"},
			{serveRoute, "\tm := s.source.Hosts()\n", "\tif c.believed == nil {\n\t\tc.believed = s.source.Hosts()\n\t}\n\tm := c.believed\n"},
		}, Tests: each("serve", "TestMapIsReadAgain")},
		{Name: "second-hop", What: "a forwarded question is forwarded again", Edits: []Edit{
			{serveRoute, "if self || c.hop || !known {", "if self || !known {"},
		}, Tests: each("serve", "TestOneHop")},
		{Name: "second-hop-watch", What: "a forwarded watch is forwarded again", Edits: []Edit{
			{serveFollow, "if self || w.c.hop || !known {", "if self || !known {"},
		}, Tests: each("serve", "TestOneHop")},
		{Name: "no-hop-mark", What: "forwarded questions are not marked", Edits: []Edit{
			{serveRoute, "p.remote(hop(longer), s.left(ctx), client)", "p.remote(longer, s.left(ctx), client)"},
		}, Tests: each("serve", "TestAuthentication")},
		{Name: "map-alone", What: "only the map says whether a task is here", Edits: []Edit{
			{serveRoute, "if out, err := here(ctx, s, p); !is(err, query.NotOwner) {", "if out, err := here(ctx, s, p); false {"},
		}, Tests: each("serve", "TestNewOwnerWithOldMap")},
		{Name: "redirect-asks", What: "who asked for a redirect gets the answer of the owner", Edits: []Edit{
			{serveRoute, "\tif c.redirect {\n", "\tif c.redirect && false {\n"},
		}, Tests: each("serve", "TestRedirect")},
		{Name: "partial-as-whole", What: "partitions without an answer are left out", Edits: []Edit{
			{serveGaps, "case g.first == nil || partial:", "case true:"},
		}, Tests: each("serve", "TestPartial")},
		{Name: "mixed-keys", What: "rows of a partition stand with the keys of another", Edits: []Edit{
			{serveMultiGet, "out.Found[k].Row = a.out.Found[j].Row", "out.Found[j].Row, _ = a.out.Found[j].Row, k"},
		}, Tests: each("serve", "TestPartial")},
		{Name: "unprotected", What: "TLS alone, or authentication alone, is enough off loopback", Edits: []Edit{
			{serveListen, "s.cfg.TLS != nil && s.cfg.authenticates()", "(s.cfg.TLS != nil || s.cfg.authenticates())"},
		}, Tests: each("serve", "TestUnprotected")},
	}
}

func paging() []Mutant {
	return []Mutant{
		{Name: "page-no-position", What: "a later page may be as of an earlier commit", Edits: []Edit{
			{serveRows, "\tw.Position = w.Position.Merge(t.read.position(task))\n", ""},
		}, Tests: each("serve", "TestPageNeverGoesBack")},
		{Name: "token-no-position", What: "a page token does not say what was read", Edits: []Edit{
			{serveGather, "t.read[m.GetPartition()] = max(t.read[m.GetPartition()], m.GetSeq())", "_ = m"},
		}, Tests: each("serve", "TestPageNeverGoesBack")},
		{Name: "any-token", What: "a page token is good for any question", Edits: []Edit{
			{serveRows, "if t.question != q.hash {", "if false {"},
		}, Tests: each("serve", "TestTokenOfAnotherQuestion")},
		{Name: "begin-anew", What: "a later page begins with the first row of its partition", Edits: []Edit{
			{serveGather, "if p == t.partition {", "if false {"},
		}, Tests: each("serve", "TestPages")},
		{Name: "over-full", What: "a page takes all of what partitions have answered", Edits: []Edit{
			{serveGather, "if len(a.out.rows) > g.has.rows || size > g.has.bytes {", "if false {"},
		}, Tests: each("serve", "TestPages")},
		{Name: "mixed-views", What: "rows of one page come from two states of the task", Edits: []Edit{
			{serveReadPage, "\t\trows, next, err := v.Read(ctx, q.st, p)\n", "\t\tlater, err := s.source.View(ctx, v.Task, query.Want{})\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\trows, next, err := later.Read(ctx, q.st, p)\n\t\tlater.Close()\n"},
		}, Tests: each("serve", "TestQuestionsUnderMoves")},
		{Name: "window-end-included", What: "a window contains the moment of its end", Edits: []Edit{
			{serveReadPage, "rows[i].End <= q.at", "rows[i].End < q.at"},
			{serveReadPage, "store.AppendWindowKey(nil, q.at, nil)", "store.AppendWindowKey(nil, q.at-1, nil)"},
		}, Tests: each("serve", "TestWindowsOfOneKey")},
		{Name: "prefix-of-key", What: "a key stands for all that begin with it", Edits: []Edit{
			{serveBounds, "return key, keys, nil", "if key != nil {\n\t\treturn nil, query.Prefix(key), nil\n\t}\n\treturn key, keys, nil"},
		}, Tests: each("serve", "TestWindowsOfOneKey")},
		{Name: "late-as-failed", What: "a deadline that comes while rows are read is an error of the instance", Edits: []Edit{
			{serveCall, `query.Errorf(query.Deadline, "the deadline came`, `query.Errorf(query.Failed, "the deadline came`},
		}, Tests: each("serve", "TestDeadlineWhileReading")},
		{Name: "view-kept", What: "a question keeps its view of the task", Edits: []Edit{
			{serveRoute, "\tdefer v.Close()\n", ""},
		}, Tests: each("serve", "TestScanLeft")},
		{Name: "iterator-kept", What: "a page keeps its iterator of the database", Edits: []Edit{
			{"query/view.go", "errors.Join(it.Err(), it.Close())", "it.Err()"},
		}, Tests: each("serve", "TestScanLeft")},
	}
}

func watching() []Mutant {
	return []Mutant{
		{Name: "watch-from-now", What: "a watch goes on at the new owner with what comes next", Edits: []Edit{
			{serveFollow, "\tfrom, err := w.s.source.Watch(", "\tat := f.seq\n\tif v, err := w.s.source.View(ctx, f.task, query.Want{}); err == nil {\n\t\tif at > 0 {\n\t\t\tat = v.Seq\n\t\t}\n\t\tv.Close()\n\t}\n\tfrom, err := w.s.source.Watch("},
			{serveFollow, "From: f.seq}", "From: at}"},
		}, Tests: each("serve", "TestWatchFollowsMoves")},
		{Name: "watch-anew", What: "a watch begins anew at the new owner", Edits: []Edit{
			{serveFollow, "\tf.fresh, f.filling = f.seq == 0, false\n", "\tf.seq = 0\n\tf.fresh, f.filling = f.seq == 0, false\n"},
		}, Tests: each("serve", "TestWatchFollowsMoves", "TestWatchToken")},
		{Name: "token-too-far", What: "the token of a watch counts rows that are not told whole", Edits: []Edit{
			{serveWatch, "\tif whole {\n", "\tif true {\n"},
		}, Tests: each("serve", "TestWatchToken")},
		{Name: "filtered-stays", What: "a row that the filter no longer lets pass is not told", Edits: []Edit{
			{serveFollow, "\t\tif row == nil {\n", "\t\tif row == nil {\n\t\t\tcontinue\n\t\t}\n\t\tif row == nil {\n"},
		}, Tests: each("serve", "TestWatchOverHTTP")},
	}
}

func limiting() []Mutant {
	return []Mutant{
		{Name: "limit-rows", What: "one row more than the limit", Edits: []Edit{
			{serveRows, "case n < 0 || int(n) > most:", "case n < 0 || int(n) > most+1:"},
		}, Tests: each("serve", "TestLimitRows")},
		{Name: "limit-keys", What: "one key more than the limit", Edits: []Edit{
			{serveMultiGet, "if n > s.cfg.Limits.Rows {", "if n > s.cfg.Limits.Rows+1 {"},
		}, Tests: each("serve", "TestLimitRows")},
		{Name: "limit-bytes", What: "one byte less than the limit", Edits: []Edit{
			{serveReadPage, "if n > s.cfg.Limits.Bytes {", "if n >= s.cfg.Limits.Bytes {"},
		}, Tests: each("serve", "TestLimitBytes")},
		{Name: "limit-key", What: "a key of one byte less than the limit", Edits: []Edit{
			{serveKey, "if len(key) > s.cfg.Limits.Key {", "if len(key) >= s.cfg.Limits.Key {"},
		}, Tests: each("serve", "TestLimitKey")},
		{Name: "limit-request", What: "a question of one byte more than the limit", Edits: []Edit{
			{serveCall, "n > s.cfg.Limits.Request {", "n > s.cfg.Limits.Request+1 {"},
		}, Tests: each("serve", "TestLimitRequest")},
		{Name: "limit-slots", What: "one watch more than the limit", Edits: []Edit{
			{serveSlots, "make(chan struct{}, n)", "make(chan struct{}, n+1)"},
		}, Tests: each("serve", "TestLimitWatchers")},
		{Name: "limit-timeout", What: "the longest timeout is too long", Edits: []Edit{
			{serveCall, "if t > s.cfg.Limits.MaxTimeout {", "if t >= s.cfg.Limits.MaxTimeout {"},
		}, Tests: each("serve", "TestLimitTimeout")},
		{Name: "limit-rate", What: "one question more than the bucket holds", Edits: []Edit{
			{serveBucket, "if k.tokens < 1 {", "if k.tokens < 0 {"},
		}, Tests: each("serve", "TestRate")},
	}
}
