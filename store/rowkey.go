package store

// AppendTimeKey appends t so that bytes compare as the times do: big-endian, the sign bit flipped.
func AppendTimeKey(dst []byte, t int64) []byte { panic("") }
