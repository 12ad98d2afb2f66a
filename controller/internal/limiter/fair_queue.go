// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// fairQueue takes from its namespaces in turn, and within one in the order of arrival.
type fairQueue struct {
	// turns lists the namespaces that have somebody waiting; the first is next.
	turns   []string
	waiting map[string][]types.NamespacedName
}

func newFairQueue() fairQueue { return fairQueue{waiting: map[string][]types.NamespacedName{}} }

// push adds a key at the end of its namespace's line, unless it is there already.
func (q *fairQueue) push(key types.NamespacedName) {
	line := q.waiting[key.Namespace]
	if slices.Contains(line, key) {
		return
	}
	if len(line) == 0 {
		q.turns = append(q.turns, key.Namespace)
	}
	q.waiting[key.Namespace] = append(line, key)
}

// pop takes the next key; its namespace goes to the end of the turns.
func (q *fairQueue) pop() (types.NamespacedName, bool) {
	if len(q.turns) == 0 {
		return types.NamespacedName{}, false
	}
	namespace := q.turns[0]
	key := q.waiting[namespace][0]
	q.remove(key)
	if at := slices.Index(q.turns, namespace); at >= 0 {
		q.turns = append(slices.Delete(q.turns, at, at+1), namespace)
	}
	return key, true
}

func (q *fairQueue) remove(key types.NamespacedName) {
	line := q.waiting[key.Namespace]
	at := slices.Index(line, key)
	if at < 0 {
		return
	}
	line = slices.Delete(line, at, at+1)
	if len(line) > 0 {
		q.waiting[key.Namespace] = line
		return
	}
	delete(q.waiting, key.Namespace)
	turn := slices.Index(q.turns, key.Namespace)
	q.turns = slices.Delete(q.turns, turn, turn+1)
}

func (q *fairQueue) len() int {
	n := 0
	for _, line := range q.waiting {
		n += len(line)
	}
	return n
}
