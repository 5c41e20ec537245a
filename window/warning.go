package window

import "fmt"

// Warnings returns what is probably not meant, each as a sentence without a period.
func (c *Config) Warnings() []string {
	var s []string
	if v := c.Window.Warning(); v != "" {
		s = append(s, v)
	}
	if c.Window.Kind() == KindGlobal && c.early.never() {
		s = append(s, "the global window has no early trigger: it emits only when its input is finished")
	}
	switch {
	case c.lateness == 0 && c.lateGiven && !c.late.never():
		s = append(s, "the late trigger has no effect without allowed lateness")
	case c.lateness > 0 && c.late.never():
		s = append(s, "late records are refused, but their windows are kept for the allowed lateness")
	}
	if c.onTime == IfNew && c.emitAlways {
		s = append(s, "with EmitAlways, OnTime(IfNew) emits as Always does")
	}
	return s
}

// ChainWarning returns what is wrong with a window whose input are the panes of another window, or "": late panes of
// the first one are expired for the second one if that allows less lateness.
func ChainWarning(up, down *Config) string {
	if down.lateness >= up.lateness {
		return ""
	}
	return fmt.Sprintf("W-LATENESS-CHAIN: the allowed lateness %s is less than %s of the window before: late panes of that one will be refused as expired",
		down.latenessString(), up.latenessString())
}
