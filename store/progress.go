package store

// ReadProgress returns the progress blob a DB holds, nil if it holds none. It is for whoever has to decide, before
// Open, whether the DB can be rolled forward.
func ReadProgress(db DB) ([]byte, error) {
	blob, ok, err := db.Get(nil, []byte(progressKey))
	if err != nil || !ok {
		return nil, err
	}
	return blob, nil
}
