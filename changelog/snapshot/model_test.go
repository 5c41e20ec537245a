package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// The model: one task, its progress record, and all processes that own it or have owned it. Time is that of a bubble.
// Whatever they do in whatever order, broken off anywhere, every snapshot that the newest committed progress record lists can
// be restored, to exactly the database it was made of.
type model struct {
	t      *testing.T
	rng    *rand.Rand
	bucket *objects.Mem

	seq      uint64
	refs     []Ref                        // of the newest committed progress record
	contents map[string]map[string]string // what a snapshot was made of, by the key of its manifest
	owner    *process
	zombies  []*process
	made     int // contents of files ever made
	log      []string

	uploads, broken, collected, dropped int
}

// process is one owner of the task, from its take-over to its death.
type process struct {
	db       *database
	memo     *Memo
	next     int // number of the next table file
	refs     []Ref
	retained map[string]*Manifest
	commit   time.Time // read before its last commit began
	pending  *Ref
	began    time.Time // of the upload that is pending
}

var errCrash = errors.New("crash")

// shaky returns the bucket as a process sees it that may die in one of its next operations.
func (m *model) shaky() objects.Store {
	at, done := m.rng.Int64N(12)+1, m.rng.IntN(2) == 0
	return objects.WithFaults(m.bucket, nil, func(op objects.Op) objects.Fault {
		if op.N < at {
			return objects.Fault{}
		}
		f := objects.Fault{Err: errCrash, Done: done && op.N == at}
		if f.Done && op.Kind == objects.OpPut && m.rng.IntN(2) == 0 && !m.has(op.Key) {
			f.Damage = objects.Cut(2) // a store that keeps half of what is new to it
		}
		return f
	})
}

func (m *model) has(key string) bool {
	r, err := m.bucket.Get(context.Background(), key, 0, -1)
	if err == nil {
		_ = r.Close()
	}
	return err == nil
}

func (m *model) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// takeOver makes a new owner: its database is that of a retained snapshot, or new. The old one goes on as a zombie.
func (m *model) takeOver() {
	if m.owner != nil {
		m.zombies = append(m.zombies, m.owner)
		if len(m.zombies) > 3 {
			m.zombies = m.zombies[1:]
		}
	}
	p := &process{db: newDatabase(), memo: &Memo{}, next: 1, refs: m.refs, retained: make(map[string]*Manifest)}
	for _, r := range m.refs {
		loaded, err := Load(context.Background(), m.bucket, r)
		if err != nil {
			m.fail("take-over: %v", err)
		}
		p.retained[r.Key] = loaded
	}
	if len(m.refs) > 0 && m.rng.IntN(4) > 0 {
		from := m.refs[m.rng.IntN(len(m.refs))]
		p.db.files = maps.Clone(m.contents[from.Key])
		// Numbers go on where those of the files end: names repeat those of the lineages that went another way.
		for name := range p.db.files {
			var number int
			if _, err := fmt.Sscanf(name, "%d.sst", &number); err == nil {
				p.next = max(p.next, number+1)
			}
		}
		m.note("take-over from %d", from.Seq)
	} else {
		m.note("take-over from nothing")
	}
	m.owner = p
}

// work changes the database of a process: tables come and go, and now and then an old content comes back under a new name.
func (m *model) work(p *process) {
	for range 1 + m.rng.IntN(3) {
		if m.rng.IntN(3) > 0 || len(p.db.files) == 0 {
			m.made++
			content := fmt.Sprintf("content %d", m.made)
			if m.rng.IntN(5) == 0 {
				content = fmt.Sprintf("content %d", 1+m.rng.IntN(m.made))
			}
			p.db.files[fmt.Sprintf("%06d.sst", p.next)] = content
			p.next++
			continue
		}
		names := slices.Sorted(maps.Keys(p.db.files))
		delete(p.db.files, names[m.rng.IntN(len(names))])
	}
	p.db.files["MANIFEST"] = fmt.Sprintf("manifest %d", m.rng.IntN(1000))
}

func (m *model) upload(p *process, s objects.Store) {
	p.pending, p.began = nil, time.Now()
	retained := make([]*Manifest, 0, len(p.refs))
	for _, r := range p.refs {
		retained = append(retained, p.retained[r.Key])
	}
	h := head(m.seq)
	h.Writer = m.rng.Uint64()
	r, manifest, _, err := New(s, Options{Parallel: 1 + m.rng.IntN(3)}).Upload(context.Background(), p.db, h, retained, p.memo)
	m.note("upload at %d: %v", m.seq, err)
	if err != nil {
		if !errors.Is(err, errCrash) {
			m.fail("upload: %v", err)
		}
		m.broken++
		return
	}
	m.uploads++
	p.pending = &r
	p.retained[r.Key] = manifest
	m.contents[r.Key] = maps.Clone(p.db.files)
	time.Sleep(time.Duration(m.rng.IntN(20)) * time.Minute)
}

// commit writes a progress record, which only the owner can, and collects behind it.
func (m *model) commit() {
	p := m.owner
	p.commit = time.Now()
	m.seq++
	refs := slices.Clone(m.refs)
	for i := range refs { // a database is hydrated, a savepoint released
		if m.rng.IntN(6) == 0 {
			refs[i].Kept = Rolling
		}
	}
	if p.pending != nil && time.Since(p.began) < Grace {
		p.pending.Kept = []byte{Rolling, Rolling, Rolling, Hydrating, Savepoint}[m.rng.IntN(5)]
		var dropped []Ref
		refs, dropped = Retain(refs, *p.pending, 3)
		m.dropped += len(dropped)
	}
	p.pending = nil
	if m.rng.IntN(5) == 0 {
		m.note("commit %d aborted", m.seq)
		return
	}
	m.refs, p.refs = refs, refs
	m.note("commit %d lists %d", m.seq, len(refs))
	if m.rng.IntN(2) == 0 {
		m.collect(p)
	}
}

func (m *model) collect(p *process) {
	s := objects.Store(m.bucket)
	if m.rng.IntN(3) == 0 {
		s = m.shaky()
	}
	n, _, err := Collect(context.Background(), s, testTask, p.refs, p.commit, Grace)
	m.note("collect with %d: %d, %v", len(p.refs), n, err)
	m.collected += n
	// A zombie may find its own manifests gone: the owner has dropped them.
	if err != nil && !errors.Is(err, errCrash) && (p == m.owner || !errors.Is(err, objects.ErrNotFound)) {
		m.fail("collect: %v", err)
	}
}

func (m *model) step() {
	switch n := m.rng.IntN(20); {
	case n < 5:
		m.work(m.owner)
	case n < 9:
		m.upload(m.owner, m.bucket)
		m.commit()
	case n < 11:
		m.upload(m.owner, m.shaky())
	case n < 13:
		m.commit()
	case n < 14:
		m.takeOver()
	case n < 17 && len(m.zombies) > 0:
		z := m.zombies[m.rng.IntN(len(m.zombies))]
		switch m.rng.IntN(3) {
		case 0:
			m.work(z)
		case 1:
			m.upload(z, m.shaky()) // what it puts is never published
		case 2:
			if !z.commit.IsZero() {
				m.collect(z) // late, with what it knew
			}
		}
	default:
		time.Sleep(time.Duration(m.rng.IntN(180)) * time.Minute)
	}
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	for _, line := range m.log[max(len(m.log)-40, 0):] {
		m.t.Log(line)
	}
	m.t.Fatalf(format, args...)
}

// check restores every snapshot that counts.
func (m *model) check() {
	for _, r := range m.refs {
		back, err := restore(context.Background(), m.bucket, r)
		if err != nil {
			m.fail("snapshot of %d: %v", r.Seq, err)
		}
		if !maps.Equal(back.files, m.contents[r.Key]) {
			m.fail("snapshot of %d is %q, want %q", r.Seq, back.files, m.contents[r.Key])
		}
	}
}

// settle lets everything die but the owner, and a collection later only what counts is left.
func (m *model) settle() {
	time.Sleep(3 * Grace)
	if _, _, err := Collect(context.Background(), m.bucket, testTask, m.refs, time.Now(), Grace); err != nil {
		m.fail("last collection: %v", err)
	}
	want := make(map[string]bool)
	for _, r := range m.refs {
		want[r.Key] = true
		loaded, err := Load(context.Background(), m.bucket, r)
		if err != nil {
			m.fail("load: %v", err)
		}
		for _, f := range loaded.Files {
			if f.Data == nil {
				want[loaded.Object(f)] = true
			}
		}
	}
	if got := keys(m.t, m.bucket); len(got) != len(want) {
		m.fail("%d objects are left, %d are needed", len(got), len(want))
	}
}

func TestModel(t *testing.T) {
	var uploads, broken, collected, dropped int
	for n := range 60 {
		seed := uint64(n)
		if n >= 40 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 3)), bucket: objects.NewMem(), contents: make(map[string]map[string]string)}
				m.takeOver()
				for range 100 {
					m.step()
					m.check()
				}
				m.settle()
				m.check()
				uploads += m.uploads
				broken += m.broken
				collected += m.collected
				dropped += m.dropped
			})
		})
	}
	t.Logf("%d uploads, %d broken off, %d objects collected, %d snapshots dropped", uploads, broken, collected, dropped)
	if uploads < 500 || broken < 100 || collected < 500 || dropped < 100 {
		t.Error("the model does too little to prove anything")
	}
}
