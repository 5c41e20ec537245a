package serve

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/tidemark/tidemark/query"
)

// The bounds of an expression: its length in bytes, its nodes, and how many elements it may make. An expression can only
// loop over the elements of something, and loops do not nest deeper than two: with these bounds one row takes a bounded
// time.
const (
	maxFilter = 4096
	maxNodes  = 200
	maxMade   = 10_000
	maxNested = 2
)

// filter is a compiled expression over rows. It is used by one goroutine at a time.
type filter struct {
	program *vm.Program
	machine vm.VM
	env     filterEnv
}

// filterEnv is what an expression sees of a row.
type filterEnv struct {
	Key   any   `expr:"key"`
	Value any   `expr:"value"`
	Start int64 `expr:"start"`
	End   int64 `expr:"end"`
	Time  int64 `expr:"time"`
}

// parseFilter compiles an expression, nil if there is none.
func parseFilter(text string) (*filter, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxFilter {
		return nil, query.Errorf(query.InvalidRequest, "the filter has %d bytes, more than %d", len(text), maxFilter)
	}
	bad := func(err error) error {
		return &query.Error{Reason: query.InvalidRequest, Message: "the filter is none", Err: err}
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, bad(err)
	}
	if loops(tree.Node) > maxNested {
		return nil, query.Errorf(query.InvalidRequest, "the filter nests loops deeper than %d", maxNested)
	}
	program, err := expr.Compile(text, expr.Env(filterEnv{}), expr.AsBool(), expr.MaxNodes(maxNodes), expr.Optimize(false), expr.DisableBuiltin("now"))
	if err != nil {
		return nil, bad(err)
	}
	return &filter{program: program, machine: vm.VM{MemoryBudget: maxMade}}, nil
}

// loops returns how deep the loops of an expression nest.
func loops(n ast.Node) int {
	v := &loopVisitor{depth: map[ast.Node]int{}}
	deepest := 0
	ast.Find(n, func(n ast.Node) bool {
		if p, ok := n.(*ast.PredicateNode); ok {
			deepest = max(deepest, v.of(p))
		}
		return false
	})
	return deepest
}

// loopVisitor counts, for a loop, itself and the deepest below it.
type loopVisitor struct{ depth map[ast.Node]int }

func (v *loopVisitor) of(p *ast.PredicateNode) int {
	if d, ok := v.depth[p]; ok {
		return d
	}
	below := 0
	ast.Find(p.Node, func(n ast.Node) bool {
		if q, ok := n.(*ast.PredicateNode); ok {
			below = max(below, v.of(q))
		}
		return false
	})
	v.depth[p] = 1 + below
	return 1 + below
}

// keep says whether a row, with its key and value as JSON, passes.
func (f *filter) keep(r *query.Row, key, value []byte) (bool, error) {
	if f == nil {
		return true, nil
	}
	var err error
	if f.env.Key, err = plain(key); err != nil {
		return false, err
	}
	if f.env.Value, err = plain(value); err != nil {
		return false, err
	}
	f.env.Start, f.env.End, f.env.Time = r.Start, r.End, r.Time
	out, err := f.machine.Run(f.program, f.env)
	if err != nil {
		return false, &query.Error{Reason: query.InvalidRequest, Message: "the filter fails for a row; value?.name and ?? help where fields are missing", Err: err}
	}
	pass, _ := out.(bool)
	return pass, nil
}

// plain turns JSON into what expressions work with. Integers stay integers where 64 bits hold them.
func plain(text []byte) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return int(i)
		}
		f, err := v.Float64()
		if err != nil {
			return math.NaN()
		}
		return f
	case map[string]any:
		for k, w := range v {
			v[k] = numbers(w)
		}
	case []any:
		for i, w := range v {
			v[i] = numbers(w)
		}
	}
	return v
}
