package store

// Resize changes the limits of a State: an instance shares out its memory anew when it gets or loses tasks. A smaller
// ViewBytes takes effect as rows are loaded, a smaller LayerBytes with the next Freeze. Zero keeps what is set.
func (s *State) Resize(viewBytes, layerBytes int64) {
	if viewBytes > 0 {
		s.o.ViewBytes = viewBytes
	}
	if layerBytes > 0 {
		s.o.LayerBytes = layerBytes
	}
}
