package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
)

// twin is the naive model of a State with one key-value store: three maps.
type twin struct {
	persisted, committed, sealed, cur map[string]twinRow
	hasSealed                         bool
	dirty, dirtySealed                map[string]bool // keys written in the generation
	order                             []string        // of the first writes in the current generation
	drained                           map[string]twinRow
	drainOrder                        []string
}

type twinRow struct {
	value string
	time  int64
}

func newTwin() *twin {
	t := &twin{persisted: map[string]twinRow{}, committed: map[string]twinRow{}, cur: map[string]twinRow{}}
	t.clear()
	return t
}

func (t *twin) clear() {
	t.dirty, t.order = map[string]bool{}, nil
	t.drained, t.drainOrder = map[string]twinRow{}, nil
}

func (t *twin) write(key string, row *twinRow) {
	if !t.dirty[key] {
		t.dirty[key] = true
		t.order = append(t.order, key)
	}
	if _, ok := t.drained[key]; !ok {
		t.drained[key] = t.cur[key]
		t.drainOrder = append(t.drainOrder, key)
	}
	if row == nil {
		delete(t.cur, key)
	} else {
		t.cur[key] = *row
	}
}

func (t *twin) seal() {
	t.sealed, t.hasSealed, t.dirtySealed = maps.Clone(t.cur), true, t.dirty
	t.clear()
}

func (t *twin) commit() { t.committed, t.hasSealed = t.sealed, false }

func (t *twin) rollback() {
	t.cur, t.hasSealed = maps.Clone(t.committed), false
	t.clear()
}

// machine drives a State and its twin in step.
type machine[V any] struct {
	t       *testing.T
	rng     *rand.Rand
	db      DB
	reopen  func(DB) DB
	s       *State
	v       *View[V]
	c       codec.Codec[V]
	make    func(string) V
	read    func(V) string
	twin    *twin
	o       Options
	keys    int
	long    bool
	flight  *Frozen
	pending map[string]twinRow // committed content of flight
	now     int64
	commits int
	log     []string
	wantOld bool
}

func (m *machine[V]) fatal(format string, args ...any) {
	m.t.Helper()
	for _, l := range m.log[max(0, len(m.log)-60):] {
		m.t.Log(l)
	}
	m.t.Fatalf(format, args...)
}

func (m *machine[V]) spec() []Spec {
	return []Spec{
		{ID: "other", KeySchema: "bytes", ValueSchema: "int64", Changelog: true},
		{ID: "main", KeySchema: "bytes", ValueSchema: m.c.Schema(), Changelog: true},
	}
}

func (m *machine[V]) open() {
	s, err := Open(m.db, m.spec(), m.o)
	if err != nil {
		m.fatal("open: %v", err)
	}
	m.s = s
	if m.v, err = ViewOf(s, "main", m.c); err != nil {
		m.fatal("view: %v", err)
	}
	if m.wantOld {
		m.v.EnableOld()
	}
}

func (m *machine[V]) key() []byte {
	n := m.rng.IntN(m.keys)
	if n == 0 {
		return []byte{}
	}
	k := fmt.Appendf(nil, "k%0*d", 1+n%3, n)
	if m.long && n%2 == 0 {
		k = append(k, bytes.Repeat([]byte{'x'}, 12+n%20)...)
	}
	if n%7 == 0 {
		k = append(k, make([]byte, n%11)...)
	}
	return k
}

func (m *machine[V]) step() {
	key := m.key()
	m.now += m.rng.Int64N(50)
	switch op := m.rng.IntN(100); {
	case op < 30:
		m.put(key)
	case op < 40:
		m.log = append(m.log, fmt.Sprintf("delete %q", key))
		if err := m.v.Delete(key, m.now); err != nil {
			m.fatal("delete: %v", err)
		}
		m.twin.write(string(key), nil)
	case op < 60:
		m.row(key)
	case op < 70:
		m.get(key)
	case op < 75:
		m.scan()
	case op < 80:
		m.drain()
	case op < 86:
		if !m.twin.hasSealed {
			m.seal()
		}
	case op < 92:
		if m.twin.hasSealed {
			m.commit()
		}
	case op < 94:
		m.log = append(m.log, "rollback")
		m.s.Rollback()
		m.twin.rollback()
	case op < 96:
		m.persist()
	case op < 98:
		m.freeze()
	case op < 99:
		m.finish()
	default:
		m.crash()
	}
}

func (m *machine[V]) put(key []byte) {
	val := fmt.Sprintf("v%d-%d", m.now, m.rng.IntN(1000))
	if m.rng.IntN(10) == 0 {
		val = ""
	}
	m.log = append(m.log, fmt.Sprintf("put %q %q", key, val))
	if err := m.v.Put(key, m.make(val), m.now); err != nil {
		m.fatal("put: %v", err)
	}
	m.twin.write(string(key), &twinRow{m.read(m.make(val)), m.now})
}

// row reads a row and mostly writes to it, as an aggregate does.
func (m *machine[V]) row(key []byte) {
	r, err := m.v.Row(key)
	if err != nil {
		m.fatal("row: %v", err)
	}
	m.compare(key, r.Value, r.Time, r.Present)
	switch m.rng.IntN(4) {
	case 0:
		return
	case 1:
		m.log = append(m.log, fmt.Sprintf("remove %q", key))
		m.v.Remove(r, m.now)
		m.twin.write(string(key), nil)
	default:
		val := fmt.Sprintf("r%d-%d", m.now, m.rng.IntN(1000))
		m.log = append(m.log, fmt.Sprintf("set %q %q", key, val))
		m.v.Set(r, m.make(val), m.now)
		m.twin.write(string(key), &twinRow{m.read(m.make(val)), m.now})
	}
}

func (m *machine[V]) compare(key []byte, val V, time int64, present bool) {
	want, ok := m.twin.cur[string(key)]
	if present != ok {
		m.fatal("%q: present %v, want %v", key, present, ok)
	}
	if present && (m.read(val) != want.value || time != want.time) {
		m.fatal("%q: %q at %d, want %q at %d", key, m.read(val), time, want.value, want.time)
	}
}

func (m *machine[V]) get(key []byte) {
	val, ok, err := m.v.Get(key)
	if err != nil {
		m.fatal("get: %v", err)
	}
	want, present := m.twin.cur[string(key)]
	if ok != present || ok && m.read(val) != want.value {
		m.fatal("get %q: %q %v, want %q %v", key, m.read(val), ok, want.value, present)
	}
}

func (m *machine[V]) scan() {
	lo, hi := m.key(), m.key()
	if m.rng.IntN(3) == 0 {
		lo = nil
	}
	if m.rng.IntN(3) == 0 {
		hi = nil
	}
	m.log = append(m.log, fmt.Sprintf("scan %q %q", lo, hi))
	c, err := m.v.Scan(lo, hi)
	if err != nil {
		m.fatal("scan: %v", err)
	}
	want := slices.Sorted(maps.Keys(m.twin.cur))
	want = slices.DeleteFunc(want, func(k string) bool { return k < string(lo) || hi != nil && k >= string(hi) })
	n := 0
	for c.Next() {
		if n == len(want) || want[n] != string(c.Key()) {
			m.fatal("scan: row %d is %q, want %q", n, c.Key(), want)
		}
		n++
		val, err := c.Value()
		if err != nil {
			m.fatal("scan: %v", err)
		}
		m.compare(c.Key(), val, c.Time(), true)
	}
	if err := c.Close(); err != nil || n != len(want) {
		m.fatal("scan: %d rows %v, want %q", n, err, want)
	}
}

func (m *machine[V]) drain() {
	m.log = append(m.log, "drain")
	n := 0
	err := m.v.Drain(func(key []byte, old V, hadOld bool, r *Row[V]) error {
		if n == len(m.twin.drainOrder) || m.twin.drainOrder[n] != string(key) {
			m.fatal("drain: %q as number %d, want %q", key, n, m.twin.drainOrder)
		}
		n++
		m.compare(key, r.Value, r.Time, r.Present)
		if was := m.twin.drained[string(key)]; m.wantOld && (was != twinRow{}) != hadOld || hadOld && m.read(old) != was.value {
			m.fatal("drain: %q was %q %v, want %v", key, m.read(old), hadOld, was)
		}
		return nil
	})
	if err != nil || n != len(m.twin.drainOrder) {
		m.fatal("drain: %d rows %v, want %q", n, err, m.twin.drainOrder)
	}
	m.twin.drained, m.twin.drainOrder = map[string]twinRow{}, nil
}

func (m *machine[V]) seal() {
	m.log = append(m.log, "seal")
	n := 0
	err := m.s.Seal(func(c Change) error {
		if n == len(m.twin.order) || m.twin.order[n] != string(c.Key) || c.Store != 1 {
			m.fatal("seal: %d/%q as number %d, want %q", c.Store, c.Key, n, m.twin.order)
		}
		n++
		want, ok := m.twin.cur[string(c.Key)]
		if (c.Value != nil) != ok {
			m.fatal("seal: %q has value %q, want %v", c.Key, c.Value, ok)
		}
		if ok {
			val, err := m.c.Decode(c.Value)
			if err != nil || m.read(val) != want.value || c.Time != want.time {
				m.fatal("seal: %q is %q at %d %v, want %v", c.Key, c.Value, c.Time, err, want)
			}
		}
		return nil
	})
	if err != nil || n != len(m.twin.order) {
		m.fatal("seal: %d changes %v, want %q", n, err, m.twin.order)
	}
	m.twin.seal()
}

func (m *machine[V]) commit() {
	m.log = append(m.log, "commit")
	m.commits++
	if err := m.s.Commit(fmt.Appendf(nil, "p%d", m.commits), m.now); err != nil {
		m.fatal("commit: %v", err)
	}
	m.twin.commit()
}

func (m *machine[V]) freeze() {
	f := m.s.Freeze(m.now, m.rng.IntN(2) == 0)
	if f == nil {
		return
	}
	m.log = append(m.log, "freeze")
	m.flight, m.pending = f, m.twin.committed
	if m.rng.IntN(2) == 0 {
		m.write()
	}
}

func (m *machine[V]) write() {
	m.log = append(m.log, "write")
	if err := m.flight.Write(); err != nil {
		m.fatal("write: %v", err)
	}
	m.twin.persisted = m.pending
}

func (m *machine[V]) finish() {
	if m.flight == nil {
		return
	}
	if !m.flight.returned {
		m.write()
	}
	m.log = append(m.log, "finish")
	if err := m.s.Finish(); err != nil {
		m.fatal("finish: %v", err)
	}
	m.flight = nil
}

func (m *machine[V]) persist() {
	m.finish()
	force := m.rng.IntN(2) == 0
	m.log = append(m.log, fmt.Sprintf("persist %v", force))
	before := m.s.layerCommits
	if err := m.s.Persist(m.now, force); err != nil {
		m.fatal("persist: %v", err)
	}
	if force && m.s.layerCommits > 0 {
		m.fatal("persist: %d commits left", m.s.layerCommits)
	}
	if m.s.layerCommits == 0 && before > 0 {
		m.twin.persisted = m.twin.committed
		if got := string(m.s.Progress()); got != fmt.Sprintf("p%d", m.commits) {
			m.fatal("progress %s after commit %d", got, m.commits)
		}
	}
}

// crash loses everything but the DB.
func (m *machine[V]) crash() {
	m.log = append(m.log, "crash")
	m.flight = nil
	m.twin.committed = m.twin.persisted
	m.twin.rollback()
	m.db = m.reopen(m.db)
	m.open()
}

func (m *machine[V]) check() {
	s := m.s
	var rows, clean int64
	v := m.v
	for i := range v.rows {
		r := v.row(i)
		if !r.live {
			continue
		}
		rows += v.size(r)
		if r.mark <= s.committed {
			clean += v.size(r)
		}
	}
	if s.rowBytes != rows || s.cleanBytes != clean {
		m.fatal("row bytes %d, clean %d; counted %d and %d", s.rowBytes, s.cleanBytes, rows, clean)
	}
	if limit := m.o.ViewBytes + 2*v.rowSize(40, 40); clean > limit+s.maxPromoted() {
		m.fatal("%d clean bytes, budget %d", clean, m.o.ViewBytes)
	}
	if g := s.committedGens; len(g.list) > 0 && (g.base <= s.persisted || g.base+uint32(len(g.list))-1 != s.committed) {
		m.fatal("generations %d to %d are kept, %d persisted, %d committed", g.base, int(g.base)+len(g.list)-1, s.persisted, s.committed)
	}
	if live := int(v.rows) - len(v.free); live != v.table.n {
		m.fatal("%d rows live, %d in the table", live, v.table.n)
	}
}

// maxPromoted allows for rows that have just become clean by a commit and leave with the next load.
func (s *State) maxPromoted() int64 { return 1 << 20 }

func runMachine[V any](t *testing.T, c codec.Codec[V], mk func(string) V, read func(V) string, steps int) {
	for n := range 40 {
		seed := rand.Uint64()
		if n == 0 {
			seed = 1
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			m := &machine[V]{
				t: t, rng: rng, db: NewMem(), reopen: func(db DB) DB { return db }, c: c, make: mk, read: read,
				twin: newTwin(), keys: 1 + rng.IntN(60), long: rng.IntN(2) == 0, wantOld: rng.IntN(2) == 0,
				o: Options{
					ViewBytes: 1 + rng.Int64N(5000), LayerBytes: 1 + rng.Int64N(5000), LayerRecords: 1 + rng.Int64N(200),
					LayerAge: time.Duration(rng.Int64N(3000)) * time.Millisecond,
				},
			}
			m.open()
			for range steps {
				m.step()
				m.check()
			}
		})
	}
}

func TestTwinInt64(t *testing.T) {
	hash := func(s string) int64 {
		var h int64
		for _, b := range []byte(s) {
			h = h*31 + int64(b)
		}
		return h
	}
	runMachine(t, codec.Int64(), hash, func(v int64) string { return fmt.Sprint(v) }, 1500)
}

func TestTwinBytes(t *testing.T) {
	runMachine(t, codec.Bytes(), func(s string) []byte { return append([]byte{}, s...) },
		func(v []byte) string { return string(v) }, 1500)
}

type doc struct {
	S    string
	Tags []string `json:",omitempty"`
}

func TestTwinJSON(t *testing.T) {
	c, err := codec.For[*doc]()
	if err != nil {
		t.Fatal(err)
	}
	runMachine(t, c, func(s string) *doc { return &doc{S: s, Tags: []string{s}} },
		func(v *doc) string {
			if v == nil {
				return ""
			}
			return v.S
		}, 800)
}
