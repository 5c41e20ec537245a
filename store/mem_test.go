package store_test

import (
	"testing"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/storetest"
)

func memDisk(*testing.T) storetest.Disk {
	return storetest.Disk{Open: func() (store.DB, error) { return store.NewMem(), nil }}
}

func TestMem(t *testing.T)        { storetest.Run(t, memDisk) }
func TestStateOnMem(t *testing.T) { storetest.RunState(t, memDisk) }
func TestTypedOnMem(t *testing.T) { storetest.RunTyped(t, memDisk) }
