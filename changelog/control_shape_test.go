package changelog

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControlShape(t *testing.T) {
	s := ShapeRecord{Operator: "count", Fingerprint: "f1", Shape: []byte{1, 2, 3}}
	r := ShapeRecordOf(s)
	if got, want := hex.EncodeToString(r.Value), "01"+"026631"+"03010203"; r.Key != "shape/count" || got[:len(got)-8] != want {
		t.Errorf("%s: %s, want %s", r.Key, got, want)
	}
	var c ControlState
	value := append([]byte(nil), r.Value...)
	if err := c.Apply(r.Key, value); err != nil {
		t.Fatal(err)
	}
	clear(value)
	if d := cmp.Diff(map[string]ShapeRecord{"count": s}, c.Shapes); d != "" || c.Empty() {
		t.Errorf("empty %v %s", c.Empty(), d)
	}
	for name, bad := range map[string][]byte{"short": r.Value[:5], "cut": sealed(r.Value[:6]), "too long": sealed(append(r.Value[:len(r.Value)-4:len(r.Value)-4], 0))} {
		if err := c.Apply(r.Key, bad); !errors.Is(err, ErrControl) {
			t.Errorf("%s: %v", name, err)
		}
	}
	newer := sealed([]byte{ControlVersion + 1})
	if ve, ok := errors.AsType[*VersionError](c.Apply(r.Key, newer)); !ok || ve.Have != ControlVersion+1 {
		t.Error("a newer version is read")
	}
	if err := c.Apply(r.Key, nil); err != nil || !c.Empty() {
		t.Errorf("%v, empty %v", err, c.Empty())
	}
}
