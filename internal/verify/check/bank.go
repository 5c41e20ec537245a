package check

import (
	"encoding/binary"
	"encoding/json/v2"

	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Bank checks the workload bank: every committed balance is the one before plus one leg, every leg is booked
// once, and when nothing is in flight all balances add up to zero.
type Bank struct {
	legs     map[legID]*leg
	open     int // legs not booked yet
	accounts map[int64]workload.Balance
	r        Report
}

type legID struct{ transfer, account int64 }

type leg struct {
	amount int64
	booked bool
}

// NewBank returns a checker that has seen nothing.
func NewBank() *Bank {
	return &Bank{legs: make(map[legID]*leg), accounts: make(map[int64]workload.Balance)}
}

// Input takes the next record of an input partition.
func (b *Bank) Input(r Record) {
	var t workload.Transfer
	if err := json.Unmarshal(r.Value, &t); err != nil {
		b.r.Wrongly("bank input %s: %v", r.at(), err)
		return
	}
	for _, l := range t.Legs() {
		id := legID{l.Transfer, l.Account}
		if b.legs[id] != nil {
			b.r.Wrongly("bank input %s: transfer %d is there twice", r.at(), t.ID)
			continue
		}
		b.legs[id] = &leg{amount: l.Amount}
		b.open++
	}
}

// Output takes the next committed record of an output partition. Its inputs must have been shown before.
func (b *Bank) Output(r Record) {
	account := int64(binary.BigEndian.Uint64(r.Key))
	var is workload.Balance
	if err := json.Unmarshal(r.Value, &is); err != nil {
		b.r.Wrongly("bank output %s: %v", r.at(), err)
		return
	}
	was := b.accounts[account]
	b.accounts[account] = is
	l := b.legs[legID{is.Transfer, account}]
	switch {
	case l == nil:
		b.r.Wrongly("bank output of account %d: transfer %d has no leg there", account, is.Transfer)
		return
	case l.amount != is.Amount:
		b.r.Wrongly("bank output of account %d: transfer %d moves %d, booked as %d", account, is.Transfer, l.amount, is.Amount)
	case l.booked:
		b.r.duplicated("bank output of account %d: transfer %d is booked again, as number %d", account, is.Transfer, is.Count)
	default:
		l.booked = true
		b.open--
	}
	if is.Count != was.Count+1 || is.Sum != was.Sum+is.Amount {
		b.r.Wrongly("bank output of account %d: %+v follows %+v", account, is, was)
	}
}

// Open returns the number of legs that are not booked yet.
func (b *Bank) Open() int { return b.open }

// Quiet checks the sum over all accounts, at a moment when all transfers shown are booked.
func (b *Bank) Quiet() *Report {
	out := b.Now()
	var sum int64
	for _, a := range b.accounts {
		sum += a.Sum
	}
	if sum != 0 {
		out.Wrongly("bank: all accounts add up to %d", sum)
	}
	return out
}

// Done reports, once all inputs must have had their effect.
func (b *Bank) Done() *Report {
	out := b.Quiet()
	if b.open > 0 {
		n := 0
		for id, l := range b.legs {
			if !l.booked && n < 3 {
				n++
				out.detail("not booked: transfer %d on account %d", id.transfer, id.account)
			}
		}
		out.Lost += b.open
	}
	return out
}

// Now reports what has been found so far.
func (b *Bank) Now() *Report {
	out := new(Report)
	out.Add(&b.r)
	return out
}
