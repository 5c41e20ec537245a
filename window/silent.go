package window

// ClosesSilently reports whether closing a window never emits a pane and never drops records that no pane has shown, so
// that nobody has to look at the rows of a window that is only closed.
func (c *Config) ClosesSilently() bool {
	return (c.onTime == Always || c.early.count == 1) && c.onClose != Always && (c.lateness == 0 || c.late.count == 1 || c.late.never())
}

// FiresSilently reports whether a window never emits a pane because the watermark reaches its end, so that nobody has to
// look at its row then: there is no such firing, or every record has fired before.
func (c *Config) FiresSilently() bool {
	return c.onTime == Never || c.onTime == IfNew && c.early.count == 1 && !c.emitAlways
}

// Retracts reports whether panes come with retractions of the values shown before.
func (c *Config) Retracts() bool { return c.Mode == ModeRetracting }

// Clocked reports whether a trigger goes by the wall clock, so that deadlines have to be kept.
func (c *Config) Clocked() bool { return c.early.every > 0 || c.late.every > 0 }

// ShowsRecords reports whether a record may make a pane at once, by a trigger that counts or because a session absorbs
// another.
func (c *Config) ShowsRecords() bool {
	return c.early.count > 0 || c.lateness > 0 && c.late.count > 0 || c.Window.Kind() == KindSession
}
