package mutant

import "slices"

// The files of snapshots that mutants change.
const (
	objBody         = "changelog/objects/body.go"
	objDir          = "changelog/objects/dir.go"
	objDirlist      = "changelog/objects/dirlist.go"
	objKey          = "changelog/objects/key.go"
	objLimit        = "changelog/objects/limit.go"
	bucketGet       = "changelog/s3/get.go"
	snapCandidates  = "internal/engine/candidates.go"
	snapPublish     = "internal/engine/publish.go"
	snapRestore     = "internal/engine/restore.go"
	snapSnapshotter = "internal/engine/snapshotter.go"
	bucketMultipart = "changelog/s3/multipart.go"
	bucketOptions   = "changelog/s3/options.go"
	bucketPut       = "changelog/s3/put.go"
	bucketRetry     = "changelog/s3/retry.go"
	bucketStore     = "changelog/s3/store.go"
	snapChoose      = "changelog/snapshot/choose.go"
	snapCollect     = "changelog/snapshot/collect.go"
	snapDownload    = "changelog/snapshot/download.go"
	snapGarbage     = "changelog/snapshot/garbage.go"
	snapJudge       = "changelog/snapshot/judge.go"
	snapLoad        = "changelog/snapshot/load.go"
	snapManifest    = "changelog/snapshot/manifest.go"
	snapMemo        = "changelog/snapshot/memo.go"
	snapQueue       = "changelog/snapshot/queue.go"
	snapRefs        = "changelog/snapshot/refs.go"
	snapUpload      = "changelog/snapshot/upload.go"
)

// Snapshots returns the mutants of snapshots and of the stores they are kept in. Each names ordinary tests, all of which must
// fail.
func Snapshots() []Mutant {
	return slices.Concat(copies(), collecting(), choosing(), keeping(), bucketing(), publishing())
}

// each names tests of one package, every one of which must fail.
func each(pkg string, names ...string) []Test {
	var tests []Test
	for _, name := range names {
		tests = append(tests, units(pkg, name)...)
	}
	return tests
}

// copies are the rules of uploads, downloads and manifests.
func copies() []Mutant {
	return []Mutant{
		{Name: "manifest-first", What: "the manifest is put before the files", Edits: []Edit{
			{snapUpload, "\tif err := up.files(ctx, retained); err != nil {\n\t\treturn Ref{}, err\n\t}\n\tencoded, err", "\tencoded, err"},
			{snapUpload, "\tif err := up.u.store.Put(ctx, ref.Key, objects.Bytes(encoded)); err != nil {\n\t\treturn Ref{}, err\n\t}\n\treturn ref, nil", "\tif err := up.u.store.Put(ctx, ref.Key, objects.Bytes(encoded)); err != nil {\n\t\treturn Ref{}, err\n\t}\n\treturn ref, up.files(ctx, retained)"},
		}, Tests: each("changelog/snapshot", "TestUploadManifestLast")},
		{Name: "side-by-side", What: "files of snapshots wait by arrival, so that all tasks are ready when the last one is", Edits: []Edit{
			{snapQueue, "q.waiting[i].download <= download", "q.waiting[i] != nil"},
		}, Tests: each("changelog/snapshot", "TestQueue", "TestDownloadsOneAfterTheOther")},
		{Name: "turn-lost", What: "a turn that was granted to a file that gives up is lost", Edits: []Edit{
			{snapQueue, "q.pass() // it was granted meanwhile", "_ = q"},
		}, Tests: each("changelog/snapshot", "TestQueueGrantedMeanwhile")},
		{Name: "no-file-sum", What: "the sum of a file is not compared", Edits: []Edit{
			{snapDownload, "n != f.Size || sum != f.Sum", "n != f.Size"},
		}, Tests: each("changelog/snapshot", "TestDamageIsFound")},
		{Name: "no-file-size", What: "a file may go on behind its end, which its sum shows", Edits: []Edit{
			{snapDownload, "io.LimitReader(r, f.Size+1)", "io.LimitReader(r, f.Size)"},
		}, Tests: each("changelog/snapshot", "TestDamageIsFound")},
		{Name: "no-manifest-sum", What: "the bytes of a manifest are not held against its key", Edits: []Edit{
			{snapLoad, "sum != key.sum", "false && sum != key.sum"},
		}, Tests: each("changelog/snapshot", "TestLoadVerifiesByKey")},
		{Name: "any-manifest", What: "a manifest counts under the key of another task or commit", Edits: []Edit{
			{snapLoad, "m.Task() != key.task || m.Seq != key.seq", "false"},
		}, Tests: each("changelog/snapshot", "TestLoadVerifiesByKey")},
		{Name: "by-name", What: "a file is reused by its name", Edits: []Edit{
			{snapUpload, "there[m.Object(f)] = true", "there[f.Name] = true"},
			{snapUpload, "!there[key] {\n\t\t\tthere[key] = true", "!there[f.Name] {\n\t\t\tthere[key] = true"},
		}, Tests: each("changelog/snapshot", "TestOSameName", "TestModel")},
		{Name: "foreign-task", What: "a file of another task counts as there", Edits: []Edit{
			{snapUpload, "there[m.Object(f)] = true", "there[up.m.Object(f)] = true"},
		}, Tests: each("changelog/snapshot", "TestUploadForeignTask")},
		{Name: "all-manifests", What: "what the bucket holds counts as there, retained or not", Edits: []Edit{
			{snapUpload, "\t\tif key := up.m.Object(*f); !there[key] {", "\t\tif r, err := up.u.store.Get(ctx, up.m.Object(*f), 0, 0); err == nil {\n\t\t\t_ = r.Close()\n\t\t\tcontinue\n\t\t}\n\t\tif key := up.m.Object(*f); !there[key] {"},
		}, Tests: each("changelog/snapshot", "TestModel", "TestOFallback", "TestDamageIsFound")},
		{Name: "memo-any-size", What: "a remembered sum counts for a file of another size", Edits: []Edit{
			{snapMemo, "ok && e.size == size", "ok"},
		}, Tests: each("changelog/snapshot", "TestMemoFollowsSizes")},
		{Name: "memo-small-files", What: "sums of files that change are remembered", Edits: []Edit{
			{snapUpload, "ok && isTable(f.Name) {", "ok {"},
			{snapUpload, "\t\tf.Sum = sha256.Sum256(f.Data)", "\t\tf.Sum = sha256.Sum256(f.Data)\n\t\tup.memo.put(f.Name, f.Size, f.Sum)"},
		}, Tests: each("changelog/snapshot", "TestUploadIncremental", "TestModel")},
		{Name: "no-sync", What: "files are not synced", Edits: []Edit{
			{snapDownload, "\tif err == nil {\n\t\terr = out.Sync()\n\t}", ""},
		}, Tests: each("changelog/snapshot", "TestUploadAndRestore", "TestTargetFails")},
		{Name: "escape", What: "names lead out of the directory", Edits: []Edit{
			{snapManifest, "strings.Contains(name, \"/\") || objects.CheckKey(name) != nil", "name == \"\""},
		}, Tests: each("changelog/snapshot", "TestManifestRefusesPaths")},
	}
}

// collecting are the rules of what is kept and what is deleted.
func collecting() []Mutant {
	return []Mutant{
		{Name: "age-alone", What: "what is old is garbage", Edits: []Edit{
			{snapGarbage, "!ok || live[o.Key] || now", "!ok || now"},
		}, Tests: each("changelog/snapshot", "TestGarbage", "TestCollect", "TestModel", "TestUploadInterrupted")},
		{Name: "no-grace", What: "what is not published yet is garbage", Edits: []Edit{
			{snapGarbage, "live[o.Key] || now.Sub(o.Modified) <= grace", "live[o.Key]"},
		}, Tests: each("changelog/snapshot", "TestGarbage", "TestModel", "TestOPartial")},
		{Name: "unread-manifest", What: "what a manifest names that could not be read is garbage", Edits: []Edit{
			{snapGarbage, "if !live[r.Key] {", "if !live[r.Key] && false {"},
		}, Tests: each("changelog/snapshot", "TestGarbage")},
		{Name: "collect-goes-on", What: "a manifest that cannot be loaded is left out of the collection", Edits: []Edit{
			{snapCollect, "\t\t\tunread = cmp.Or(unread, err)\n", "\t\t\trefs = slices.DeleteFunc(slices.Clone(refs), func(x Ref) bool { return x == r })\n"},
		}, Tests: each("changelog/snapshot", "TestCollectUnreadable")},
		{Name: "lost-any-size", What: "an object of another size counts as the file that was put", Edits: []Edit{
			{snapGarbage, "!ok || size != f.Size", "!ok || size < 0"},
		}, Tests: each("changelog/snapshot", "TestCollectLost")},
		{Name: "retain-drops-pinned", What: "snapshots that hydrate or belong to savepoints roll too", Edits: []Edit{
			{snapRefs, "if r.Kept == Rolling {", "{"},
		}, Tests: each("changelog/snapshot", "TestRetain", "TestRetainRandom", "TestORestoredFrom")},
		{Name: "retain-oldest", What: "the oldest are kept", Edits: []Edit{
			{snapRefs, "slices.Backward(all)", "slices.All(all)"},
		}, Tests: each("changelog/snapshot", "TestRetain", "TestRetainRandom")},
		{Name: "sweep-known", What: "tasks that are known are swept", Edits: []Edit{
			{snapCollect, "if known || now", "if known && false || now"},
		}, Tests: each("changelog/snapshot", "TestSweepApp")},
		{Name: "sweep-active", What: "one old object condemns an unknown task", Edits: []Edit{
			{snapCollect, "i.Modified.After(newest[k.task])", "(newest[k.task].IsZero() || i.Modified.Before(newest[k.task]))"},
		}, Tests: each("changelog/snapshot", "TestSweepAppSparesTheActive")},
	}
}

// choosing are the rules of what may be restored and what is.
func choosing() []Mutant {
	return []Mutant{
		{Name: "tie-remote", What: "a snapshot wins over the local state at the same cost", Edits: []Edit{
			{snapChoose, "a.Kind < b.Kind", "a.Kind > b.Kind"},
		}, Tests: each("changelog/snapshot", "TestChoose", "TestChooseRandom")},
		{Name: "rejected-wins", What: "a rejected candidate may win", Edits: []Edit{
			{snapChoose, "if c.Rejected == \"\" && (", "if ("},
		}, Tests: each("changelog/snapshot", "TestChoose", "TestChooseRandom")},
		{Name: "judge-task", What: "a snapshot of another task is restored", Edits: []Edit{
			{snapJudge, "judgeTask, ", ""},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-format", What: "a snapshot of a newer format is restored", Edits: []Edit{
			{snapJudge, "judgeFormat, ", ""},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-stores", What: "a snapshot of other schemas is restored", Edits: []Edit{
			{snapJudge, "judgeStores, ", ""},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-topics", What: "a snapshot of topics made anew is restored", Edits: []Edit{
			{snapJudge, "judgeTopics, ", ""},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-seq", What: "a snapshot of a commit beyond the last is restored", Edits: []Edit{
			{snapJudge, "judgeSeq, ", ""},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-end", What: "a position beyond the end of a log is taken", Edits: []Edit{
			{snapJudge, "case end > l.HighWatermark:", "case false:"},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-start", What: "a position below the start of a compacted log is taken", Edits: []Edit{
			{snapJudge, "case end < l.Start && !l.Trimmed:", "case false:"},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-trimmed", What: "a position below the start of a trimmed log is refused", Edits: []Edit{
			{snapJudge, "end < l.Start && !l.Trimmed", "end < l.Start"},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-age", What: "deletes older than their retention are ignored", Edits: []Edit{
			{snapJudge, "case age > f.Retention.Milliseconds()/2 &&", "case false &&"},
		}, Tests: each("changelog/snapshot", "TestJudge")},
		{Name: "judge-age-at-end", What: "an old snapshot at the end of its log is refused", Edits: []Edit{
			{snapJudge, " && end+f.Markers < l.LastStable", ""},
		}, Tests: each("changelog/snapshot", "TestJudge")},
	}
}

// keeping are the rules of object stores.
func keeping() []Mutant {
	return []Mutant{
		{Name: "dir-torn", What: "a file gets its name before its content", Edits: []Edit{
			{objDir, "\tf, err := d.temp()\n\tif err != nil {\n\t\treturn err\n\t}\n\terr = copyBody", "\tif err := os.MkdirAll(filepath.Dir(d.path(key)), 0o700); err != nil {\n\t\treturn err\n\t}\n\tf, err := os.OpenFile(d.path(key), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)\n\tif err != nil {\n\t\treturn err\n\t}\n\terr = copyBody"},
		}, Tests: each("changelog/objects", "TestDir")},
		{Name: "dir-order", What: "a listing follows the directories", Edits: []Edit{
			{objDirlist, "cmp.Compare(sortName(a), sortName(b))", "cmp.Compare(a.Name(), b.Name())"},
		}, Tests: each("changelog/objects", "TestDir")},
		{Name: "dir-short", What: "half a body becomes an object", Edits: []Edit{
			{objBody, "\t\t\tif err == nil || err == io.EOF {\n\t\t\t\terr = io.ErrUnexpectedEOF\n\t\t\t}\n\t\t\treturn err", "\t\t\tif err == nil || err == io.EOF {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\treturn err"},
		}, Tests: each("changelog/objects", "TestDir", "TestMem")},
		{Name: "any-key", What: "keys lead out of the directory", Edits: []Edit{
			{objKey, "part == \"\" || part == \".\" || part == \"..\"", "part == \"\""},
		}, Tests: each("changelog/objects", "TestDir", "TestMem")},
		{Name: "limit-each", What: "every body has the whole rate", Edits: []Edit{
			{objLimit, "return &limited{s, l.Take}", "return &limited{s, func(ctx context.Context, n int64) error { return rate.New(4*bytesPerSecond, clk).Take(ctx, n) }}"},
		}, Tests: each("changelog/objects", "TestLimit")},
		{Name: "limit-twice", What: "bytes count as often as they are read", Edits: []Edit{
			{objLimit, "due := max(off+int64(n)-b.paid, 0)", "due := int64(n)"},
		}, Tests: each("changelog/objects", "TestLimitCountsOnce")},
	}
}

// bucketing are the rules of the store in a bucket.
func bucketing() []Mutant {
	return []Mutant{
		{Name: "taken-is-done", What: "what lies under the key is taken for what was put", Edits: []Edit{
			{bucketPut, "\tif taken(err) {\n\t\terr = send(ctx, key, strict, nil)\n\t}", "\tif taken(err) {\n\t\terr = nil\n\t}"},
		}, Tests: each("changelog/s3", "TestFake", "TestPutAnswerLost")},
		{Name: "any-answer", What: "after a lost answer whatever lies there counts", Edits: []Edit{
			{bucketPut, "aws.ToInt64(out.ContentLength) != size || out.LastModified == nil", "out.LastModified == nil"},
		}, Tests: each("changelog/s3", "TestPutAnswerLost")},
		{Name: "old-answer", What: "after a lost answer an old object counts", Edits: []Edit{
			{bucketPut, "return ok && now.Sub(*out.LastModified) < fresh", "return ok && now.After(time.Time{})"},
		}, Tests: each("changelog/s3", "TestPutAnswerLost")},
		{Name: "parts-stay", What: "parts of a failed upload stay", Edits: []Edit{
			{bucketMultipart, "return errors.Join(err, s.abort(ctx, key, upload.UploadId))", "return errors.Join(err)"},
		}, Tests: each("changelog/s3", "TestPartsAborted")},
		{Name: "abort-cancelled", What: "parts are given up with the context that has ended", Edits: []Edit{
			{bucketMultipart, "context.WithoutCancel(ctx)", "ctx"},
		}, Tests: each("changelog/s3", "TestPartsAborted")},
		{Name: "resume-any", What: "a body goes on with another object", Edits: []Edit{
			{bucketGet, "IfMatch: r.etag}", "}"},
		}, Tests: each("changelog/s3", "TestGetReplaced")},
		{Name: "no-resume", What: "a body that breaks off is not resumed", Edits: []Edit{
			{bucketGet, "r.fails < r.s.opts.MaxAttempts && passes(err)", "false"},
		}, Tests: each("changelog/s3", "TestGetResumed")},
		{Name: "cut-is-whole", What: "a body that ends early is whole", Edits: []Edit{
			{bucketGet, "\t\t\tif err == io.EOF {\n\t\t\t\terr = io.ErrUnexpectedEOF\n\t\t\t}\n\t\t\terr = r.failed(err)", "\t\t\tr.length = 0\n\t\t\terr = nil"},
		}, Tests: each("changelog/s3", "TestGetResumed")},
		{Name: "no-bucket", What: "a missing bucket is a missing object", Edits: []Edit{
			{bucketRetry, "c == \"NoSuchKey\" || c == \"NotFound\"", "c != \"\""},
		}, Tests: each("changelog/s3", "TestFaultsStay")},
		{Name: "retry-denied", What: "what is denied is asked for again", Edits: []Edit{
			{bucketRetry, "\tcase n >= 300:\n\t\treturn false", "\tcase n >= 300:\n\t\treturn true"},
		}, Tests: each("changelog/s3", "TestFaultsStay")},
		{Name: "no-jitter", What: "all come again at the same time", Edits: []Edit{
			{bucketRetry, "rand.N(most)", "most-1+rand.N(time.Duration(1))"},
		}, Tests: each("changelog/s3", "TestPauses")},
		{Name: "upload-is-silence", What: "a long upload counts as silence", Edits: []Edit{
			{bucketOptions, "func (c *watchedConn) Write(p []byte) (int, error) {\n\tif err := c.moved(); err != nil {\n\t\treturn 0, err\n\t}\n", "func (c *watchedConn) Write(p []byte) (int, error) {\n"},
		}, Tests: each("changelog/s3", "TestSilence")},
		{Name: "no-silence", What: "a silent server is waited for", Edits: []Edit{
			{bucketOptions, "func (c *watchedConn) moved() error { return c.SetDeadline", "func (c *watchedConn) moved() error { return nil }\n\nfunc (c *watchedConn) never() error { return c.SetDeadline"},
		}, Tests: each("changelog/s3", "TestSilentServer")},
		{Name: "no-checksum", What: "objects go without their sum", Edits: []Edit{
			{bucketStore, "return types.ChecksumAlgorithmCrc32c", "return \"\""},
			{bucketStore, "if s.opts.Checksums == checksumsRequired {\n\t\treturn \"\"\n\t}\n", ""},
		}, Tests: each("changelog/s3", "TestChecksumsSent")},
	}
}

// publishing are the rules of the engine: what a snapshot counts by, and what a restore makes of it.
func publishing() []Mutant {
	const engine = "internal/engine"
	return []Mutant{
		{Name: "publish-early", What: "a snapshot counts when its commit is sealed", Edits: []Edit{
			{snapPublish, "\tp.SetSection(changelog.SectionSnapshots, a.section)\n\treturn a, nil", "\tp.SetSection(changelog.SectionSnapshots, a.section)\n\tt.publish(e, a)\n\treturn nil, nil"},
		}, Tests: each(engine, "TestZombieSnapshot")},
		{Name: "no-tail", What: "the changelogs behind a snapshot are not replayed", Edits: []Edit{
			{snapCandidates, "\t\treturn nil, \"\", &candidateError{unfitSnapshot, true, errors.New(why)}\n\t}\n\treturn from, source, nil", "\t\treturn nil, \"\", &candidateError{unfitSnapshot, true, errors.New(why)}\n\t}\n\tfor i, c := range t.sub.changelogs {\n\t\tfrom[i] = s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}].HighWatermark\n\t}\n\treturn from, source, nil"},
		}, Tests: each(engine, "TestRestoreFromSnapshot")},
		{Name: "stale-error", What: "what was wrong with a snapshot ends the restore that goes on without it", Edits: []Edit{
			{snapCandidates, "return from, \"changelog\", nil", "return from, \"changelog\", err"},
		}, Tests: each(engine, "TestSnapshotDamaged", "TestSnapshotHangs")},
		{Name: "no-patience", What: "a restore waits for an object store for ever", Edits: []Edit{
			{snapCandidates, "case <-e.cfg.Clock.After(lazyPatience):", "case <-e.cfg.Clock.After(1000 * lazyPatience):"},
		}, Tests: each(engine, "TestSnapshotHangs")},
		{Name: "no-cut", What: "a stopping instance waits for the object store", Edits: []Edit{
			{snapRestore, "context.AfterFunc(ctx, t.kept.cut)", "context.AfterFunc(ctx, func() {})"},
		}, Tests: each(engine, "TestSnapshotHangs")},
		{Name: "not-again", What: "a snapshot that failed waits for changes", Edits: []Edit{
			{snapSnapshotter, "\tt.kept.failures++\n\tt.kept.again.Store(true)\n", "\tt.kept.failures++\n"},
		}, Tests: each(engine, "TestSnapshotTriedAgain")},
		{Name: "local-at-any-price", What: "local state that can be used is used, whatever it lacks", Edits: []Edit{
			{snapCandidates, "if local.Rejected != \"\" || local.Cost > cheapLocal {", "if local.Rejected != \"\" {"},
		}, Tests: each(engine, "TestLocalStateIsExpensive")},
		{Name: "local-opened-over", What: "a snapshot is opened in place of a local state that can be used", Edits: []Edit{
			{snapCandidates, "e.lazily(c.manifest.Bytes()) && !keep", "e.lazily(c.manifest.Bytes())"},
		}, Tests: each(engine, "TestLocalStateIsExpensive")},
		{Name: "sums-unbounded", What: "reading files for their sums is not bounded", Edits: []Edit{
			{snapSnapshotter, "snapshot.Options{Parallel: 1, Take: c.Rate.Take}", "snapshot.Options{Parallel: 1}"},
		}, Tests: each(engine, "TestSnapshotRate")},
		{Name: "rate-each", What: "every database hydrates at the whole rate", Edits: []Edit{
			{"store/pebblestore/hydrate.go", "\tif l.o.Rate == nil {\n\t\tl.o.Rate = rate.New(o.BytesPerSecond, l.clock)\n\t}", "\tl.o.Rate = rate.New(max(l.o.Rate.BytesPerSecond(), o.BytesPerSecond), l.clock)"},
		}, Tests: each("store/pebblestore", "TestLazySharedRate")},
		{Name: "lost-is-there", What: "what the object store has lost counts as there", Edits: []Edit{
			{snapSnapshotter, "if len(k.lost) > 0 {", "if len(k.lost) > 1<<30 {"},
		}, Tests: each(engine, "TestBucketForgets")},
		{Name: "unread-list", What: "snapshots are made that cannot be listed", Edits: []Edit{
			{snapPublish, " || t.kept.list.unread ||", " ||"},
		}, Tests: each(engine, "TestSnapshotListOfLaterBuild")},
	}
}
