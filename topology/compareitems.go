package topology

import (
	"encoding/json/v2"
	"fmt"
	"slices"
)

// item is what is found again by its id: a store, or a repartition topic.
type item struct {
	id       string
	operator *OperatorShape
	store    *StoreShape // nil for a repartition topic
	mark     string      // all that tells it apart but the ids
}

// items are those of a shape. No two have the same id: where a store has changed its operator, the one in force counts.
type items struct {
	ids []string // in the order of operators
	by  map[string]item
}

func itemsOf(s Shape) items {
	out := items{by: make(map[string]item)}
	add := func(i item) {
		first, twice := out.by[i.id]
		if !twice {
			out.ids = append(out.ids, i.id)
		}
		if !twice || first.operator.Retired {
			out.by[i.id] = i
		}
	}
	for i := range s.Operators {
		o := &s.Operators[i]
		for j := range o.Stores {
			st := &o.Stores[j]
			add(item{st.ID, o, st, o.mark(*st)})
		}
		if o.Repartition != nil {
			add(item{o.ID, o, nil, o.mark(*o.Repartition)})
		}
	}
	return out
}

// mark is the text of an operator's part without ids, and without what is free to change.
func (o *OperatorShape) mark(part any) string {
	switch p := part.(type) {
	case StoreShape:
		p.ID, p.Older, p.Version = "", nil, 0
		if p.Window != nil {
			w := *p.Window
			w.Lateness, w.Triggers = "", ""
			p.Window = &w
		}
		if p.Dedup != nil {
			d := *p.Dedup
			d.Horizon = ""
			p.Dedup = &d
		}
		if p.TTL != nil {
			p.TTL = &TTLShape{Clock: p.TTL.Clock}
		}
		part = p
	case RepartitionShape:
		p.Partitions = 0
		part = p
	}
	text, err := json.Marshal(part, json.Deterministic(true))
	if err != nil {
		return "" // strings and numbers have a form
	}
	return fmt.Sprintf("%s %q %s", o.Kind, o.Sources, text)
}

// moved finds ids under which another operator's state would be found: what was under id is now under another one, which
// was something else before or nothing. It happens to ids that are counted, and to two that are exchanged.
func (c *comparison) moved() map[string]bool {
	out := make(map[string]bool)
	for _, id := range c.was.ids {
		w := c.was.by[id]
		n, ok := c.now.by[id]
		if !ok || w.mark == n.mark || w.operator.Kind == "" {
			continue
		}
		if w.store != nil && n.store != nil && n.store.Version > w.store.Version {
			continue // another form of it is what was meant
		}
		to := c.heir(w)
		if to == "" {
			continue
		}
		out[id] = true
		c.differ(w, RuleMoved, w.describe(), n.describe(), fmt.Sprintf(
			"give what was %s its id back, which is %s now, and choose ids that do not depend on what else the topology has", id, to))
	}
	return out
}

// heir returns the id under which the new topology has what w was, if that id is a new one or had another meaning.
func (c *comparison) heir(w item) string {
	at := slices.IndexFunc(c.now.ids, func(id string) bool {
		return id != w.id && c.now.by[id].mark == w.mark && c.was.by[id].mark != w.mark
	})
	if at < 0 {
		return ""
	}
	return c.now.ids[at]
}

// describe is an item in words.
func (i item) describe() string {
	from := ""
	for n, s := range i.operator.Sources {
		if n > 0 {
			from += ", "
		}
		from += s
	}
	if from != "" {
		from = " of " + from
	}
	if i.store == nil {
		return fmt.Sprintf("%s%s to %s", i.operator.Kind, from, i.operator.Repartition.Key)
	}
	s := fmt.Sprintf("%s%s, %s %s to %s", i.operator.Kind, from, i.store.Kind, i.store.Key, i.store.Value)
	if i.store.Form != "" {
		s += " " + i.store.Form
	}
	return s
}

// missing notes that an item has left the topology with its state.
func (c *comparison) missing(w item) {
	remedy := fmt.Sprintf("put it back, or list %s in AllowNonRestored to leave its state behind", w.operator.ID)
	if to := c.heir(w); to != "" {
		remedy = fmt.Sprintf("give %s, which looks like it, the id %s again, or list %s in AllowNonRestored to leave its state behind", to, w.id, w.operator.ID)
	}
	if w.store == nil {
		remedy = fmt.Sprintf("put it back, or let it run empty and list %s in AllowNonRestored to leave records on their way behind", w.operator.ID)
	}
	c.differ(w, RuleMissing, w.describe(), "", remedy)
}
