package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Flight is one scheduled departure: a row of the file and a record of the input topic.
type Flight struct {
	Scheduled time.Time `json:"scheduled"`
	Carrier   string    `json:"carrier"`
	Number    string    `json:"number"`
	Origin    string    `json:"origin"`
	Dest      string    `json:"dest"`
	// Delay is that of the departure in minutes, negative when it was early; nil when it was cancelled or is unknown.
	Delay *int64 `json:"delay,omitempty"`
}

// ID is the flight number with its carrier, such as UA1545: the key of the input topic.
func (f Flight) ID() string { return f.Carrier + f.Number }

// Route is the pair of airports, such as EWR-IAH.
func (f Flight) Route() string { return f.Origin + "-" + f.Dest }

// columns are those a file must have; others are ignored and the order does not matter.
var columns = []string{"scheduled_at", "carrier", "flight", "origin", "dest", "dep_delay_min"}

// readFlights calls fn for every row of a file, gzip or plain, in order, until fn returns an error.
func readFlights(file io.Reader, fn func(Flight) error) error {
	in := bufio.NewReader(file)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("flights: %w", err)
		}
		defer z.Close()
		in = bufio.NewReader(z)
	}
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return fmt.Errorf("flights: header: %w", err)
	}
	at := make(map[string]int)
	for i, name := range header {
		at[name] = i
	}
	for _, name := range columns {
		if _, ok := at[name]; !ok {
			return fmt.Errorf("flights: the file has no column %q", name)
		}
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("flights: %w", err)
		}
		f := Flight{Carrier: row[at["carrier"]], Number: row[at["flight"]], Origin: row[at["origin"]], Dest: row[at["dest"]]}
		line, _ := rows.FieldPos(0)
		if f.Scheduled, err = time.Parse(time.RFC3339, row[at["scheduled_at"]]); err != nil {
			return fmt.Errorf("flights: line %d: %w", line, err)
		}
		if text := row[at["dep_delay_min"]]; text != "" {
			delay, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("flights: line %d: %w", line, err)
			}
			f.Delay = &delay
		}
		if err := fn(f); err != nil {
			return err
		}
	}
}
