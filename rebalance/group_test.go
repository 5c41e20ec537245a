package rebalance

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleAssignment() Assignment {
	return Assignment{
		Format: 1, Generation: 7, StateFingerprint: "s1", Self: 1, Heard: 0x0102030405060708,
		Hosts: []Host{
			{Instance: "5f3a", Endpoint: "h-1:80", Rack: "r1", Workers: 2, TransactionalPrefix: "app-5f3a"},
			{Instance: "5f3b", Endpoint: "h-2:80", Rack: "r1", Workers: 2, TransactionalPrefix: "app-5f3b"},
			{Instance: "77", Workers: 1, TransactionalPrefix: "other"},
		},
		Placements: []Placement{{"count", []int{0, 1, -1}}, {"in", []int{1}}},
		Waiting:    []Waiting{{"77", OtherState}},
	}
}

func TestAssignmentGolden(t *testing.T) {
	a := sampleAssignment()
	b, err := a.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "01" + "07" + "027331" + "01" + "0102030405060708" + "03" +
		"055f3a" + "010006682d313a3830" + "0100027231" + "05" + "0100046170702d" +
		"055f3b" + "03030132" + "00" + "05" + "00" +
		"0377" + "010000" + "010000" + "02" + "0100056f74686572" +
		"02" + "05636f756e74" + "03" + "010200" + "02696e" + "01" + "02" +
		"01" + "0201"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoding changed:\n got %s\nwant %s", got, want)
	}
	back, err := DecodeAssignment(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, back); d != "" {
		t.Error(d)
	}
	if got := fmt.Sprint(back.Tasks()); got != "[count/1 in/0]" {
		t.Errorf("own tasks %s", got)
	}
	if h, ok := back.Owner(TaskID{"count", 0}); !ok || h.Instance != "5f3a" {
		t.Errorf("owner of count/0: %v %v", h, ok)
	}
	for _, none := range []TaskID{{"count", 2}, {"count", 3}, {"count", -1}, {"x", 0}} {
		if h, ok := back.Owner(none); ok {
			t.Errorf("owner of %v: %v", none, h)
		}
	}
}

func TestAssignmentRefusals(t *testing.T) {
	a := sampleAssignment()
	good, _ := a.Append(nil)
	if _, err := DecodeAssignment([]byte{2, 0}); err == nil || errors.Is(err, ErrUserData) {
		t.Errorf("newer format: %v, want a FormatError", err)
	}
	for n := range good {
		if _, err := DecodeAssignment(good[:n]); !errors.Is(err, ErrUserData) {
			t.Errorf("first %d bytes: error %v, want ErrUserData", n, err)
		}
	}
	if _, err := DecodeAssignment(append(append([]byte{}, good...), 0)); !errors.Is(err, ErrUserData) {
		t.Errorf("trailing byte: error %v", err)
	}
	a.Placements[0].Owners[0] = 3
	if _, err := a.Append(nil); err == nil {
		t.Error("an owner that is no host was encoded")
	}
}

func FuzzDecodeAssignment(f *testing.F) {
	a := sampleAssignment()
	good, _ := a.Append(nil)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAssignment(b)
		if err != nil {
			return
		}
		again, err := a.Append(nil)
		if err != nil {
			t.Fatalf("decoded %+v does not encode: %v", a, err)
		}
		back, err := DecodeAssignment(again)
		if err != nil || !cmp.Equal(a, back) {
			t.Fatalf("round trip: %v %s", err, cmp.Diff(a, back))
		}
	})
}

// The coordinator keeps the assignments of a generation in one record, so it is their
// sum that counts.
func TestAssignmentsOfALargeGroupAreSmall(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	in := Input{Partitions: map[string]int32{}, StateFingerprint: "f", Generation: 1}
	var subs []Sub
	for s := range 10 {
		topic := fmt.Sprintf("campaign-metrics-operator-%d-repartition", s)
		in.Partitions[topic] = 100
		subs = append(subs, Sub{ID: fmt.Sprintf("operator-%d", s), Topics: []string{topic}})
	}
	for m := range 100 {
		id := fmt.Sprintf("%016x", rnd.Uint64())
		in.Members = append(in.Members, Member{ID: fmt.Sprintf("tidemark-%d-0f3b9a52-7c11-4a53-8f0e-1d2c3b4a5968", m), Generation: -1, Data: MemberData{
			Instance: id, Endpoint: fmt.Sprintf("campaign-metrics-%d.campaign-metrics.streaming.svc.cluster.local:8080", m),
			Rack: fmt.Sprintf("eu-central-1%c", 'a'+m%3), Workers: 8, TransactionalPrefix: "campaign-metrics-" + id,
			StateFingerprint: "f", BuildFingerprint: "b", Subs: subs,
		}})
	}
	r := Plan(in)
	out, err := r.encode(in.Partitions, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, all := 0, 0
	for _, a := range out {
		all += len(a.MemberAssignment) + len(a.MemberID)
	}
	group, at := r.group()
	for _, m := range r.Members {
		group.Self = at[m.ID]
		b, err := group.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		data += len(b)
	}
	t.Logf("%d bytes per member, %d of user data and %d in all", data/100, data, all)
	if all >= 500_000 {
		t.Errorf("assignments take %d bytes, want less than 500,000", all)
	}
}
