package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/rate"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/storetest"
)

// sample makes a database of some levels and many chunks of 4 KiB, and its snapshot.
func sample(t testing.TB, fs *FS) (*cloud, []string) {
	t.Helper()
	db := mustOpen(t, "/origin", Options{FS: fs})
	defer mustClose(t, db)
	rng := rand.New(rand.NewPCG(1, 2))
	load(t, db, &bigRows{n: 3000, size: 100, rng: rng})
	if err := db.pebble.Compact(context.Background(), []byte("a"), []byte("z"), false); err != nil {
		t.Fatal(err)
	}
	load(t, db, &bigRows{n: 300, size: 50, rng: rng})
	apply(t, db, "key02000", "-gone-", "key00001", "new")
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	c := upload(t, db, "/origin"+CheckpointSuffix)
	c.chunk = 4 << 10
	return c, all(t, db)
}

// An empty database, opened lazily, is a database like any other.
func TestLazyConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Disk {
		fs := NewMemFS()
		origin := mustOpen(t, "/origin", Options{FS: fs})
		load(t, origin, rows(500, "v"))
		var b store.Batch
		b.DeleteRange([]byte("k"), []byte("l"))
		if err := origin.Apply(&b); err != nil {
			t.Fatal(err)
		}
		c := upload(t, origin, "/origin"+CheckpointSuffix)
		mustClose(t, origin)
		c.chunk = 512
		return storetest.Disk{
			Open: func() (store.DB, error) {
				l := c.lazy()
				l.BytesPerSecond = 20_000 // so that it stays incomplete for a while
				db, err := OpenLazy(dir, Options{FS: fs}, l)
				if errors.Is(err, os.ErrExist) {
					db, err = Open(dir, Options{FS: fs})
				}
				if err != nil {
					return nil, err
				}
				return db, nil
			},
			Crash: func(rng *rand.Rand) (err error) {
				fs, err = fs.CrashClone(rng.IntN(101), rng)
				return err
			},
		}
	})
}

// From the first moment the content is that of the snapshot; in the end the directory is that of an ordinary database.
func TestLazyOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := NewMemFS()
		c, want := sample(t, fs)
		c.latency = 20 * time.Millisecond
		l := c.lazy()
		told := hydrated(&l)
		db := mustOpenLazy(t, dir, Options{FS: fs}, l)
		_, err := Open(dir, Options{FS: fs})
		wantErr(t, "second open", err, store.ErrLocked)
		_, err = db.Checkpoint(checkpointDir)
		wantErr(t, "checkpoint", err, store.ErrHydrating)
		id, lazy, err := LazyIdentity(fs, dir)
		if id != "snapshot-1" || !lazy || err != nil {
			t.Error(id, lazy, err)
		}
		if have, total := db.Hydration(); have > 0 || total < 300_000 {
			t.Errorf("at the start: %d of %d", have, total)
		}
		wantRows(t, "while hydrating", all(t, db), want)
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		if have, total := db.Hydration(); have != total || total < 300_000 {
			t.Errorf("at the end: %d of %d", have, total)
		}
		wantRows(t, "hydrated", all(t, db), want)
		for name, chunks := range c.fetched {
			for at, n := range chunks {
				if n != 1 {
					t.Errorf("chunk %d of %s was fetched %d times", at, name, n)
				}
			}
		}
		load(t, db, rows(100, "more"))
		cp := mustCheckpoint(t, db, checkpointDir)
		download(t, cp, fs, dir+"2")
		want = all(t, db)
		mustClose(t, db)
		if id, lazy, err := LazyIdentity(fs, dir); lazy || err != nil {
			t.Error(id, lazy, err)
		}
		names, _ := fs.List(dir)
		for _, name := range names {
			if strings.HasPrefix(name, ownPrefix) && name != sealName {
				t.Errorf("%s is left", name)
			}
		}
		for _, dir := range []string{dir, dir + "2"} {
			db = mustOpen(t, dir, Options{FS: fs})
			wantRows(t, "reopened", all(t, db), want)
			if have, total := db.Hydration(); have != 0 || total != 0 {
				t.Errorf("plain: %d of %d", have, total)
			}
			mustClose(t, db)
		}
		_, err = OpenLazy(dir, Options{FS: fs}, l)
		wantErr(t, "complete", err, os.ErrExist)
	})
}

// The same on the real file system, where a sparse file takes the name of the table.
func TestLazyOnDisk(t *testing.T) {
	base := t.TempDir()
	c, want := sample(t, NewMemFS())
	l := c.lazy()
	l.BytesPerSecond = 50_000 // the rest comes when it is opened again
	db := mustOpenLazy(t, base+"/task", Options{}, l)
	if _, _, err := db.Get(nil, []byte("key00000")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	l = c.lazy()
	told := hydrated(&l)
	db = mustOpenLazy(t, base+"/task", Options{}, l)
	wantRows(t, "reopened", all(t, db), want)
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	cp := mustCheckpoint(t, db, base+"/1"+CheckpointSuffix)
	download(t, cp, OSFS(), base+"/copy")
	mustClose(t, db)
	for _, name := range []string{"/task", "/copy"} {
		db = mustOpen(t, base+name, Options{})
		wantRows(t, name, all(t, db), want)
		mustClose(t, db)
	}
}

// A directory that is not complete opens with OpenLazy and the same identity only, and without Files.
func TestLazyReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := NewMemFS()
		c, want := sample(t, fs)
		l := c.lazy()
		l.BytesPerSecond = 50_000
		db := mustOpenLazy(t, dir, Options{FS: fs}, l)
		for range 3 {
			time.Sleep(time.Second)
			have, total := db.Hydration()
			if have == 0 || have >= total {
				t.Fatalf("%d of %d bytes are here", have, total)
			}
			mustClose(t, db)
			_, err := Open(dir, Options{FS: fs})
			wantErr(t, "plain", err, store.ErrHydrating)
			other := l
			other.Identity = "snapshot-2"
			_, err = OpenLazy(dir, Options{FS: fs}, other)
			wantErr(t, "other snapshot", err, os.ErrExist)
			l.Files = nil
			before := c.asked()
			db = mustOpenLazy(t, dir, Options{FS: fs}, l)
			if now, _ := db.Hydration(); now < have || c.asked() > before+l.Parallel+10 {
				t.Errorf("%d bytes are here after reopening, %d before; %d requests", now, have, c.asked()-before)
			}
		}
		wantRows(t, "reopened", all(t, db), want)
		for name, chunks := range c.fetched {
			for at, n := range chunks {
				if n > 1+3 { // those in flight at a Close
					t.Errorf("chunk %d of %s was fetched %d times", at, name, n)
				}
			}
		}
		mustClose(t, db)
	})
}

func TestLazyRefuses(t *testing.T) {
	memory := NewMemFS()
	c, _ := sample(t, memory)
	for name, change := range map[string]func(*Lazy){
		"no identity": func(l *Lazy) { l.Identity = "" },
		"no fetch":    func(l *Lazy) { l.Fetch = nil },
		"no files":    func(l *Lazy) { l.Files = nil },
		"no manifest": func(l *Lazy) {
			l.Files = slices.DeleteFunc(slices.Clone(l.Files), func(f LazyFile) bool { return f.Name[0] == 'M' })
		},
		"twice":           func(l *Lazy) { l.Files = slices.Concat(l.Files, l.Files[:1]) },
		"leads out":       func(l *Lazy) { l.Files = append(slices.Clone(l.Files), LazyFile{Name: "../x.sst", Size: 1}) },
		"small leads out": func(l *Lazy) { l.Files = append(slices.Clone(l.Files), LazyFile{Name: "../x", Data: []byte("x")}) },
		"not a table":     func(l *Lazy) { l.Files = append(slices.Clone(l.Files), LazyFile{Name: "x", Size: 1}) },
		"missing a table": func(l *Lazy) {
			l.Files = slices.DeleteFunc(slices.Clone(l.Files), func(f LazyFile) bool { return f.Name == c.tables()[0] })
		},
	} {
		l := c.lazy()
		change(&l)
		if _, err := OpenLazy("/x/"+name, Options{FS: memory}, l); err == nil {
			t.Errorf("%s: opened", name)
		}
		names, _ := memory.List("/x")
		for _, n := range names {
			if strings.HasSuffix(n, restoreSuffix) {
				t.Errorf("%s: %s is left", name, n)
			}
		}
	}
	db := mustOpen(t, dir, Options{FS: memory})
	mustClose(t, db)
	_, err := OpenLazy(dir, Options{FS: memory}, c.lazy())
	wantErr(t, "there is a database", err, os.ErrExist)
}

// However many readers wait for a chunk, it is asked for once.
func TestLazyOneFetchPerChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		c.gate = make(chan struct{})
		db := mustOpenLazy(t, dir, Options{FS: memory}, c.lazy())
		defer mustClose(t, db)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { wantRows(t, "beside others", all(t, db), want) })
		}
		synctest.Wait()
		close(c.gate)
		wg.Wait()
		for name, chunks := range c.fetched {
			for at, n := range chunks {
				if n != 1 {
					t.Errorf("chunk %d of %s was fetched %d times", at, name, n)
				}
			}
		}
	})
}

// The first read needs few requests and few bytes, whatever the size of the database: the ends of the tables it looks
// into, and a chunk of each.
func TestLazyFirstRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		db := mustOpen(t, "/origin", Options{FS: memory})
		load(t, db, &bigRows{n: 20_000, size: 300, rng: rand.New(rand.NewPCG(1, 2))})
		want := mustGet(t, db, "key12345")
		c := upload(t, db, "/origin"+CheckpointSuffix)
		mustClose(t, db)
		c.latency = 20 * time.Millisecond
		l := c.lazy()
		l.BytesPerSecond = 1 // the background takes what it gets at once, one request per worker
		l.Parallel = 1
		begin := time.Now()
		db = mustOpenLazy(t, dir, Options{FS: memory}, l)
		wantRow(t, db, "key12345", want)
		took := time.Since(begin)
		tables := len(c.tables())
		var size int64
		for _, f := range c.files {
			size += f.Size
		}
		t.Logf("%d tables, %d bytes: first read after %v, %d requests, %d bytes", tables, size, took, c.requests, c.bytes)
		if c.requests > tables+4 || c.bytes > size/16+4*c.chunk || took > 200*time.Millisecond {
			t.Errorf("%d requests for %d of %d bytes, %v", c.requests, c.bytes, size, took)
		}
		mustClose(t, db)
	})
}

// What is read is hydrated first.
func TestLazyHeat(t *testing.T) {
	l := &lazy{chunk: 10, o: Lazy{Parallel: 1}, clock: clock.Real()}
	add := func(name string, level, heat, chunks int) *remote {
		r := &remote{LazyFile: LazyFile{Name: name, Size: int64(chunks) * 10}, l: l, n: chunks, missing: chunks,
			have: newBitmap(chunks), flights: map[int]*flight{}, level: level, heat: heat}
		l.order = append(l.order, r)
		return r
	}
	top := add("top", 0, 0, 2)
	add("cold", 5, 1, 2)
	add("hot", 6, 9, 3)
	var got []string
	for {
		tr, full := l.pick()
		if tr == nil && full == nil {
			break
		}
		if full != nil {
			got = append(got, "finish "+full.Name)
			full.done.Store(true)
			continue
		}
		got = append(got, fmt.Sprintf("%s %d+%d", tr.r.Name, tr.first, len(tr.flights)))
		for i := range tr.flights {
			tr.r.have.set(tr.first + i)
			tr.r.missing--
			delete(tr.r.flights, tr.first+i)
		}
	}
	want := "top 1+1, cold 1+1, hot 2+1, top 0+1, finish top, hot 0+2, finish hot, cold 0+1, finish cold"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("order: %s\nwant:  %s", s, want)
	}
	if !top.done.Load() {
		t.Error("top is not done")
	}
}

// The bound holds for the background, and reads do not wait for it.
func TestLazyBytesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		var size int64
		for _, b := range c.objects {
			size += int64(len(b))
		}
		l := c.lazy()
		l.BytesPerSecond = size / 100
		told := hydrated(&l)
		begin := time.Now()
		db := mustOpenLazy(t, dir, Options{FS: memory}, l)
		defer mustClose(t, db)
		time.Sleep(20 * time.Second)
		if have, _ := db.Hydration(); have < size/10 || have > size/2 {
			t.Errorf("%d of %d bytes after a fifth of the time", have, size)
		}
		before := time.Now()
		wantRows(t, "meanwhile", all(t, db), want)
		if took := time.Since(before); took > time.Second {
			t.Errorf("a scan took %v", took)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 120*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Databases that share a rate hydrate within it together, and reads of each do not wait for it.
func TestLazySharedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemFS()
		c, want := sample(t, memory)
		var size int64
		for _, b := range c.objects {
			size += int64(len(b))
		}
		const n = 4
		shared := rate.New(n*size/100, nil)
		begin := time.Now()
		var dbs []*DB
		var told []<-chan error
		for i := range n {
			l := c.lazy()
			l.Rate, l.BytesPerSecond = shared, 1
			told = append(told, hydrated(&l))
			db := mustOpenLazy(t, fmt.Sprint(dir, i), Options{FS: memory}, l)
			defer mustClose(t, db)
			dbs = append(dbs, db)
		}
		time.Sleep(20 * time.Second)
		var have int64
		for _, db := range dbs {
			h, _ := db.Hydration()
			have += h
		}
		if have < n*size/10 || have > n*size*3/10 {
			t.Errorf("%d of %d bytes after a fifth of the time", have, n*size)
		}
		before := time.Now()
		wantRows(t, "meanwhile", all(t, dbs[0]), want)
		if took := time.Since(before); took > time.Second {
			t.Errorf("a scan took %v", took)
		}
		for _, c := range told {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took > 120*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A compaction that waits for the remote store does not keep the other databases from compacting.
func TestLazyCompactionParks(t *testing.T) {
	l := newLimiter(1)
	h := new(harness)
	a, b := &fakeDB{h: h, m: l.member(alive)}, &fakeDB{h: h, m: l.member(alive)}
	a.m.Register(2, a)
	b.m.Register(2, b)
	a.m.park()() // nothing runs: a scan
	ok, handle := a.m.TrySchedule()
	if !ok {
		t.Fatal("refused")
	}
	b.want()
	if h.wg.Wait(); h.done != 0 {
		t.Fatal("the limit does not hold")
	}
	unpark := a.m.park()
	if h.wg.Wait(); h.done != 1 {
		t.Error("b does not run while a waits")
	}
	unpark()
	if b.want(); h.done != 1 {
		t.Error("b runs beside a")
	}
	handle.Done()
	if h.wg.Wait(); h.done != 2 || l.running != 0 || a.m.running != 0 || a.m.parked != 0 {
		t.Errorf("%d done, %d running", h.done, l.running)
	}
}

// The files that describe a directory are what they were.
func TestLazyStateGolden(t *testing.T) {
	s := &lazyState{identity: "app/sub/3/manifest/1 \"end x\n", chunk: 1 << 18, files: []LazyFile{
		{Name: "000012.sst", Size: 1 << 20, Sum: [32]byte{1, 2, 31: 3}}, {Name: "000013.sst", Size: 7},
	}}
	zeros := strings.Repeat("0", 54)
	lines := "tidemark-lazy 1\nidentity \"app/sub/3/manifest/1 \\\"end x\\n\"\nchunk 262144\n" +
		"file 000012.sst 1048576 0102" + zeros + "000003\nfile 000013.sst 7 " + zeros + "0000000000\n"
	b := s.encode()
	if string(b) != lines+sealEnd([]byte(lines)) {
		t.Errorf("encoded: %s", b)
	}
	back, err := decodeLazyState(b)
	if err != nil || fmt.Sprint(*back) != fmt.Sprint(*s) {
		t.Errorf("decoded: %v %v", back, err)
	}
	for i := range b {
		bad := slices.Clone(b)
		bad[i] ^= 4
		if _, err := decodeLazyState(bad); err == nil {
			t.Errorf("a flip at %d was not seen", i)
		}
		if _, err := decodeLazyState(b[:i]); err == nil {
			t.Errorf("an end at %d was not seen", i)
		}
	}
	memory := NewMemFS()
	if err := memory.WriteFile("/"+lazyStateName, b[:50]); err != nil {
		t.Fatal(err)
	}
	_, _, err = LazyIdentity(memory, "/")
	wantErr(t, "identity", err, store.ErrCorrupt)
	r := &remote{LazyFile: s.files[0], saved: bitmap{0x0f, 0x80}}
	b = encodeChunks([]*remote{r})
	lines = "tidemark-chunks 1\nfile 000012.sst 0f80\n"
	if string(b) != lines+sealEnd([]byte(lines)) {
		t.Errorf("encoded: %s", b)
	}
	for i := range len(b) + 1 {
		if err := memory.WriteFile("/"+lazyChunksName, b[:i]); err != nil {
			t.Fatal(err)
		}
		chunks, err := readChunks(memory, "/")
		if err != nil || (i == len(b)) != (string(chunks["000012.sst"]) == "\x0f\x80") {
			t.Errorf("%d bytes of the chunks: %v %v", i, chunks, err)
		}
	}
}

// A file that is not complete reads as it will be, with every way of reading.
func TestLazyHandle(t *testing.T) {
	memory := NewMemFS()
	c, _ := sample(t, memory)
	c.gate = make(chan struct{}) // nothing comes before the file is open
	db := mustOpenLazy(t, dir, Options{FS: memory}, c.lazy())
	defer mustClose(t, db)
	var handles []vfs.File
	for _, name := range c.tables() {
		path := db.lazy.PathJoin(dir, name)
		f, err := db.lazy.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.lazy.Link(path, path+".2"); err == nil {
			t.Error("linked")
		}
		handles = append(handles, f)
	}
	close(c.gate)
	for n, name := range c.tables() {
		f, want := handles[n], c.objects[name]
		rng := rand.New(rand.NewPCG(3, 3))
		for range 50 {
			off := rng.IntN(len(want) + 10)
			p := make([]byte, rng.IntN(20_000))
			n, err := f.ReadAt(p, int64(off))
			end := min(off+len(p), len(want))
			if off >= len(want) {
				end = off
			}
			if n != end-off || string(p[:n]) != string(want[min(off, len(want)):min(end, len(want))]) || (err == io.EOF) != (off >= len(want) || off+len(p) > len(want)) {
				t.Fatalf("read at %d: %d %v", off, n, err)
			}
		}
		b, err := io.ReadAll(f)
		if err != nil || string(b) != string(want) {
			t.Errorf("%s: %d bytes %v", name, len(b), err)
		}
		info, err := f.Stat()
		if err != nil || info.Size() != int64(len(want)) || info.Name() != name {
			t.Error(info, err)
		}
		_, err = f.Write([]byte("x"))
		wantErr(t, "write", err, fs.ErrPermission)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	names, err := db.lazy.List(dir)
	for _, name := range c.tables() {
		if n := strings.Count(strings.Join(names, "\n"), "\n"+name+"\n"); err != nil || n > 1 {
			t.Error(n, err)
		}
	}
}
