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
	SeenAt    time.Time `json:"seen_at,omitzero"` // when it was known, which is the order of the file
	Scheduled time.Time `json:"scheduled_at"`
	Carrier   string    `json:"carrier"`
	Number    string    `json:"flight"`
	Tail      string    `json:"tail,omitzero"`
	Origin    string    `json:"origin"`
	Dest      string    `json:"dest"`
	// Delay is that of the departure in minutes, negative when it was early; nil when it was cancelled or is unknown.
	Delay    *int64 `json:"dep_delay_min,omitempty"`
	ArrDelay *int64 `json:"arr_delay_min,omitempty"` // the same of the arrival
	Distance *int64 `json:"distance_mi,omitempty"`   // in miles
}

// When is the event time of a flight: its scheduled departure.
func (f Flight) When() time.Time { return f.Scheduled }

// Route is the pair of airports, such as EWR-IAH.
func (f Flight) Route() string { return f.Origin + "-" + f.Dest }

// columns are those a file must have, in any order. It may have those of the other fields as well.
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
		line, _ := rows.FieldPos(0)
		f, err := parseFlight(row, at)
		if err != nil {
			return fmt.Errorf("flights: line %d: %w", line, err)
		}
		if err := fn(f); err != nil {
			return err
		}
	}
}

// parseFlight makes a flight of a row; at says where the columns are.
func parseFlight(row []string, at map[string]int) (f Flight, err error) {
	text := func(column string) string {
		if i, ok := at[column]; ok {
			return row[i]
		}
		return ""
	}
	number := func(column string) *int64 {
		s := text(column)
		if s == "" {
			return nil
		}
		n, nerr := strconv.ParseInt(s, 10, 64)
		err = errors.Join(err, nerr)
		return &n
	}
	f = Flight{
		Carrier: text("carrier"), Number: text("flight"), Tail: text("tail"), Origin: text("origin"), Dest: text("dest"),
		Delay: number("dep_delay_min"), ArrDelay: number("arr_delay_min"), Distance: number("distance_mi"),
	}
	var terr error
	f.Scheduled, terr = time.Parse(time.RFC3339, text("scheduled_at"))
	err = errors.Join(err, terr)
	if s := text("seen_at"); s != "" {
		f.SeenAt, terr = time.Parse(time.RFC3339, s)
		err = errors.Join(err, terr)
	}
	return f, err
}
