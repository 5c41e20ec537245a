package changelog

import (
	"errors"
	"strings"
	"testing"
)

func sub(id string, lists ...string) SubTopology {
	s := SubTopology{ID: id}
	if len(lists) > 0 {
		s.Operators = strings.Fields(lists[0])
	}
	if len(lists) > 1 {
		s.Topics = strings.Fields(lists[1])
	}
	return s
}

func TestInherit(t *testing.T) {
	cases := []struct {
		name           string
		recorded, want []SubTopology
		ids            string
	}{
		{"first start", nil, []SubTopology{sub("a", "a b"), sub("t", "", "t")}, "a t"},
		{"same topology", []SubTopology{sub("a", "a b")}, []SubTopology{sub("a", "a b")}, "a"},
		{"an operator with a smaller id comes in", []SubTopology{sub("b", "b c")}, []SubTopology{sub("a", "a b c")}, "b"},
		{"the operator that gave the id goes", []SubTopology{sub("a", "a b")}, []SubTopology{sub("b", "b c")}, "a"},
		{"a new sub-topology beside", []SubTopology{sub("b", "b")}, []SubTopology{sub("a", "a", "t"), sub("b", "b", "u")}, "a b"},
		{"one retires", []SubTopology{sub("a", "a"), sub("b", "b")}, []SubTopology{sub("b", "b")}, "b"},
		{"and comes back", []SubTopology{sub("a", "a"), sub("b", "b")}, []SubTopology{sub("b", "b"), sub("a", "a")}, "b a"},
		{"stateless becomes stateful", []SubTopology{sub("t", "", "t")}, []SubTopology{sub("a", "a", "t")}, "t"},
		{"stateful becomes stateless", []SubTopology{sub("a", "a", "t")}, []SubTopology{sub("t", "", "t")}, "a"},
		{"operators go before topics", []SubTopology{sub("a", "a", "t"), sub("b", "b", "u")}, []SubTopology{sub("a", "a", "u"), sub("b", "b", "t")}, "a b"},
	}
	for _, c := range cases {
		got, err := Inherit(c.recorded, c.want)
		var ids []string
		for _, s := range got {
			ids = append(ids, s.ID)
		}
		if err != nil || strings.Join(ids, " ") != c.ids {
			t.Errorf("%s: ids %v, %v, want %s", c.name, ids, err, c.ids)
		}
	}
}

func TestInheritRefusals(t *testing.T) {
	_, err := Inherit([]SubTopology{sub("a", "a"), sub("b", "b")}, []SubTopology{sub("a", "a b")})
	if me, ok := errors.AsType[*MergeError](err); !ok || strings.Join(me.Former, " ") != "a b" || !strings.Contains(err.Error(), "savepoint") {
		t.Errorf("merge: %v", err)
	}
	_, err = Inherit([]SubTopology{sub("a", "a b")}, []SubTopology{sub("a", "a"), sub("b", "b")})
	if se, ok := errors.AsType[*SplitError](err); !ok || se.Former != "a" || strings.Join(se.Into, " ") != "a b" || !strings.Contains(err.Error(), "savepoint") {
		t.Errorf("split: %v", err)
	}
	_, err = Inherit([]SubTopology{sub("a", "b")}, []SubTopology{sub("b", "b", "t"), sub("a", "a", "u")})
	if te, ok := errors.AsType[*TakenError](err); !ok || te.ID != "a" {
		t.Errorf("taken id: %v", err)
	}
	// A source topic that leaves a stateful sub-topology leaves its offsets behind.
	_, err = Inherit([]SubTopology{sub("a", "a", "t u")}, []SubTopology{sub("a", "a", "t"), sub("b", "b", "u")})
	if _, ok := errors.AsType[*SplitError](err); !ok {
		t.Errorf("split by topic: %v", err)
	}
	// All findings at once.
	_, err = Inherit([]SubTopology{sub("a", "a"), sub("b", "b c"), sub("d", "d")}, []SubTopology{sub("a", "a b"), sub("c", "c")})
	if _, ok := errors.AsType[*MergeError](err); !ok {
		t.Errorf("merge beside a split: %v", err)
	}
	if _, ok := errors.AsType[*SplitError](err); !ok {
		t.Errorf("split beside a merge: %v", err)
	}
}
