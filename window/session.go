package window

// Proto returns the session that a record at ts makes on its own: [ts, ts+gap). All sessions of the key that intersect
// it become one with it; as sessions of a key do not intersect each other, one look at those that intersect Proto is
// enough.
func (w Window) Proto(ts int64) Bounds {
	ts = inside(ts)
	return Bounds{ts, add(ts, w.Gap())}
}
