package store

// WindowLayout is the layout of Kafka Streams' window stores, key, start, sequence number 0. bounds, which is pure,
// return the start of the window with an end, and the end of the window with a start. With panes, a local value begins
// with the length of the pane state, as a uvarint, and the state: that travels in the header.
func WindowLayout(startOf, endOf func(int64) int64, panes bool) Layout { panic("") }

// SessionLayout is the layout of Kafka Streams' session stores: key, end, start. panes is as in WindowLayout. Kafka
// Streams' sessions include their last moment, so their end is one less than ours.
func SessionLayout(panes bool) Layout { panic("") }

// VersionedLayout is the layout of Kafka Streams' versioned stores: the plain key, valid from the time of the record.
func VersionedLayout() Layout { panic("") }

// ExpiringLayout has the plain key and value; the time until which the value is good travels in the header.
func ExpiringLayout() Layout { panic("") }
