package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

func verdict(t *testing.T, lines ...string) bool {
	t.Helper()
	history, err := read(bufio.NewScanner(strings.NewReader(strings.Join(lines, "\n"))))
	if err != nil {
		t.Fatal(err)
	}
	return porcupine.CheckOperations(model.ToModel(), history)
}

const (
	arrived  = `{"client": 1, "call": 1, "return": 2, "op": "arrive", "id": "a", "status": "placed", "nic": "n1"}`
	lost     = `{"client": 1, "call": 1, "return": null, "op": "arrive", "id": "a"}`
	departed = `{"client": 1, "call": 3, "return": 4, "op": "depart", "id": "a", "status": "left"}`
)

func TestHistories(t *testing.T) {
	for _, one := range []struct {
		name  string
		right bool
		lines []string
	}{
		{"in order", true, []string{arrived, departed,
			`{"client": 2, "call": 5, "return": 6, "op": "where", "id": "a", "status": "unknown"}`}},
		{"a lost arrival may have happened", true, []string{lost,
			`{"client": 2, "call": 5, "return": 6, "op": "where", "id": "a", "status": "placed", "nic": "n7"}`}},
		{"a lost arrival may not have happened", true, []string{lost,
			`{"client": 2, "call": 5, "return": 6, "op": "where", "id": "a", "status": "unknown"}`}},
		{"an acknowledged arrival is lost", false, []string{arrived,
			`{"client": 2, "call": 5, "return": 6, "op": "where", "id": "a", "status": "unknown"}`}},
		{"an old answer", false, []string{arrived, departed,
			`{"client": 2, "call": 5, "return": 6, "op": "where", "id": "a", "status": "placed", "nic": "n1"}`}},
		{"doubled", false, []string{arrived,
			`{"client": 2, "call": 5, "return": 6, "op": "arrive", "id": "a", "status": "placed", "nic": "n2"}`}},
		{"a dry run changes nothing", true, []string{arrived,
			`{"client": 2, "call": 3, "return": 4, "op": "dry depart", "id": "a", "status": "left"}`,
			`{"client": 2, "call": 5, "return": 6, "op": "where", "id": "a", "status": "placed", "nic": "n1"}`}},
		{"a dry run on old knowledge", false, []string{arrived, departed,
			`{"client": 2, "call": 5, "return": 6, "op": "dry depart", "id": "a", "status": "left"}`}},
		{"left twice", false, []string{arrived, departed,
			`{"client": 2, "call": 5, "return": 6, "op": "depart", "id": "a", "status": "left"}`}},
	} {
		if verdict(t, one.lines...) != one.right {
			t.Errorf("%s: not %v", one.name, one.right)
		}
	}
}
