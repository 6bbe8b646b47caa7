// Checks a history of the service: is there an order of all operations, each between its call and its return, in which
// every answer is right? Reads operations as lines of JSON from stdin; prints `ok` or the instance with the first fault.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is one request, and its answer if one came. Times are nanoseconds.
type Operation struct {
	Client int    `json:"client"`
	Call   int64  `json:"call"`
	Return *int64 `json:"return"`
	Op     string `json:"op"`
	ID     string `json:"id"`
	Status string `json:"status"` // placed, left, refused or unknown; empty where no answer came
	Nic    string `json:"nic"`
}

const absent = ""

// An instance is absent or on a NIC. Whether an operation without an answer has happened is open.
var model = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byID := map[string][]porcupine.Operation{}
		for _, one := range history {
			id := one.Input.(Operation).ID
			byID[id] = append(byID[id], one)
		}
		found := make([][]porcupine.Operation, 0, len(byID))
		for _, part := range byID {
			found = append(found, part)
		}
		return found
	},
	Init: func() []interface{} { return []interface{}{absent} },
	Step: func(state, input, output interface{}) []interface{} {
		return step(state.(string), input.(Operation), output.(Operation))
	},
	Equal: func(one, other interface{}) bool { return one == other },
	DescribeOperation: func(input, output interface{}) string {
		one := output.(Operation)
		return fmt.Sprintf("%s %s: %s %s", one.Op, one.ID, one.Status, one.Nic)
	},
}

// anywhere is an instance that was placed by an arrival whose answer was lost.
const anywhere = "?"

func step(state string, input, output Operation) []interface{} {
	if output.Return == nil {
		return unanswered(state, input)
	}
	switch input.Op + " " + output.Status {
	case "arrive placed":
		if state == absent || state == anywhere || state == output.Nic {
			return []interface{}{output.Nic}
		}
	case "arrive rejected":
		if state == absent {
			return []interface{}{absent}
		}
	case "depart left":
		if state != absent {
			return []interface{}{absent}
		}
	case "depart refused":
		if state == absent {
			return []interface{}{absent}
		}
	case "dry depart left":
		if state != absent {
			return []interface{}{state}
		}
	case "dry depart refused":
		if state == absent {
			return []interface{}{absent}
		}
	case "where placed":
		if state == output.Nic || state == anywhere {
			return []interface{}{output.Nic}
		}
	case "where unknown":
		if state == absent {
			return []interface{}{absent}
		}
	}
	return nil
}

func unanswered(state string, input Operation) []interface{} {
	switch input.Op {
	case "arrive":
		if state == absent {
			return []interface{}{absent, anywhere}
		}
	case "depart":
		if state != absent {
			return []interface{}{state, absent}
		}
	}
	return []interface{}{state}
}

func main() {
	history, err := read(bufio.NewScanner(os.Stdin))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	result := porcupine.CheckOperationsTimeout(model.ToModel(), history, 10*time.Minute)
	if result == porcupine.Ok {
		fmt.Printf("ok: %d operations\n", len(history))
		return
	}
	fmt.Printf("%s: %s\n", result, culprit(history))
	os.Exit(1)
}

func read(lines *bufio.Scanner) ([]porcupine.Operation, error) {
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	var found []porcupine.Operation
	last := int64(0)
	for lines.Scan() {
		var one Operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(found)+1, err)
		}
		found = append(found, porcupine.Operation{ClientId: one.Client, Input: one, Output: one, Call: one.Call})
		last = max(last, one.Call)
		if one.Return != nil {
			last = max(last, *one.Return)
		}
	}
	for number := range found {
		found[number].Return = last + 1 // until then, it may still happen
		if back := found[number].Output.(Operation).Return; back != nil {
			found[number].Return = *back
		}
	}
	return found, lines.Err()
}

// The operations of the first instance whose own history has no order.
func culprit(history []porcupine.Operation) string {
	for _, part := range model.Partition(history) {
		if porcupine.CheckOperationsTimeout(model.ToModel(), part, time.Minute) != porcupine.Ok {
			text := ""
			for _, one := range part {
				text += fmt.Sprintf("\n  %d to %d: %s", one.Call, one.Return, model.DescribeOperation(one.Input, one.Output))
			}
			return part[0].Input.(Operation).ID + text
		}
	}
	return "only together"
}
