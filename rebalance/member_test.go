package rebalance

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleMember() MemberData {
	return MemberData{
		FormatMin: 1, FormatMax: 3, Instance: "5f3a", Endpoint: "10.0.0.1:8080", Rack: "r1", Workers: 2,
		TransactionalPrefix: "app-5f3a", StateFingerprint: "s1", BuildFingerprint: "b1",
		Subs: []Sub{{ID: "count", Topics: []string{"app-count-repartition", "app-sum-repartition"}}, {ID: "in", Topics: []string{"in"}}},
	}
}

func TestMemberGolden(t *testing.T) {
	b, err := sampleMember().Append(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	const want = "01" + "01" + "03" + "0435663361" + "0d31302e302e302e313a38303830" + "027231" + "02" +
		"086170702d35663361" + "027331" + "026231" + "02" +
		"05636f756e74" + "02" + "010015" + "6170702d636f756e742d7265706172746974696f6e" +
		"050c" + "0373756d" +
		"02696e" + "01" + "01010169"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoding changed:\n got %s\nwant %s", got, want)
	}
	back, err := DecodeMember(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sampleMember(), back); d != "" {
		t.Error(d)
	}
}

func TestMemberNewerFormatShowsItsRange(t *testing.T) {
	b := []byte{9, 7, 9, 1, 2, 3}
	d, err := DecodeMember(b)
	if fe, ok := errors.AsType[*FormatError](err); !ok || fe.Have != 9 {
		t.Fatalf("error %v, want a FormatError of version 9", err)
	}
	if d.FormatMin != 7 || d.FormatMax != 9 {
		t.Errorf("range %d to %d, want 7 to 9", d.FormatMin, d.FormatMax)
	}
}

func TestMemberRefusals(t *testing.T) {
	good, _ := sampleMember().Append(nil, 1)
	cases := map[string][]byte{
		"empty":           {},
		"range upside":    {1, 3, 2},
		"range from 0":    {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"truncated":       good[:len(good)-1],
		"trailing":        append(append([]byte{}, good...), 0),
		"hostile count":   {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"shares too much": {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 6, 0, 0},
	}
	for name, b := range cases {
		if _, err := DecodeMember(b); !errors.Is(err, ErrUserData) {
			t.Errorf("%s: error %v, want ErrUserData", name, err)
		}
	}
	if _, err := (MemberData{}).Append(nil, 2); err == nil {
		t.Error("encoding in an unknown version succeeded")
	}
}

func FuzzDecodeMember(f *testing.F) {
	good, _ := sampleMember().Append(nil, 1)
	f.Add(good)
	f.Add([]byte{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeMember(b)
		if err != nil {
			return
		}
		again, err := d.Append(nil, 1)
		if err != nil {
			t.Fatalf("decoded %+v does not encode: %v", d, err)
		}
		back, err := DecodeMember(again)
		if err != nil || !cmp.Equal(d, back) {
			t.Fatalf("round trip: %v %s", err, cmp.Diff(d, back))
		}
	})
}
