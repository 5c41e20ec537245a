package engine

// limiter shrinks transactions that keep failing: two aborts at the same place halve the next transaction,
// down to one record, so that a record the broker refuses is found and goes to its policy.
type limiter struct {
	limit  int // records per transaction, 0 = no limit
	aborts int // refused transactions in a row
	last   int // records in the last refused transaction
}

func (l *limiter) reached(n int) bool { return l.limit > 0 && n >= l.limit }

// refused notes that a transaction of n records was refused for what it carried.
func (l *limiter) refused(n int) {
	l.aborts++
	if l.aborts < 2 {
		l.last = n
		return
	}
	if l.limit == 0 {
		l.limit = max(n, l.last, 2)
	}
	l.limit = max(l.limit/2, 1)
}

// committed notes that a transaction went through.
func (l *limiter) committed() {
	l.aborts = 0
	if l.limit > 0 {
		if l.limit *= 2; l.limit > 1<<16 {
			l.limit = 0
		}
	}
}
