package workload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// Inputs are compared over months and with other programs: they must not change.
func TestInputsStayTheSame(t *testing.T) {
	for name, want := range map[string]string{"W1": "1ee40192463333b6", "W2Z": "cb613f8325b965ce", "STATE": "461d97ed7e57bacd"} {
		s, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		g := workload.NewGen(s, 1000, 1)
		var r workload.Rec
		for g.Next(&r) {
			key, value := workload.AppendKey(nil, r.ID), g.AppendValue(nil, &r)
			if len(key) != workload.KeySize || len(value) != workload.ValueSize {
				t.Fatalf("%s: record of %d+%d bytes", name, len(key), len(value))
			}
			if workload.ID(key) != r.ID || workload.Seq(value) != r.Seq || workload.Amount(value) != r.Amount {
				t.Fatalf("%s: %+v does not come back", name, r)
			}
			h.Write(key)
			h.Write(value)
		}
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != want {
			t.Errorf("%s: hash %s, want %s", name, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	if _, err := workload.Find("W99"); err == nil {
		t.Error("no error")
	}
}
