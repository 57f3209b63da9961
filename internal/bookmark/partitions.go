package bookmark

import (
	"strconv"
	"strings"
)

// partitions compares two lists of partitions.
func (c *comparison) partitions(at Change, s, p value) (total tally) {
	match := matchPartitions(s, p)
	var i int
	for item := range s.eachItem {
		part := at
		part.Partition = shorten(strings.TrimPrefix(at.Partition+"; "+partitionName(item, i), "; "), maxNameLength)
		first := len(c.changes)
		total.add(c.value(part, partitionsKey, item, match[i].planned))
		if match[i].guessed {
			for j := range c.changes[first:] {
				change := &c.changes[first+j]
				change.Kind, change.Distance = Changed, ""
			}
		}
		i++
	}
	return total
}

// partitionMatch is the planned partition for a stored one.
type partitionMatch struct {
	planned value
	guessed bool // another one may be meant as well
}

// matchPartitions finds the planned partition for each stored one. Those with equal
// contexts are matched in their order; where fewer of them are planned, the last
// one is it for the rest. Without a context, equal ones are matched, and then what
// is left, in its order: if that is more than one, by guess.
func matchPartitions(s, p value) []partitionMatch {
	planned := map[string][]value{} // by context
	var others []value
	for item := range p.eachItem {
		if context := item.get(contextKey); context.exists() {
			id := normal.of(context)
			planned[id] = append(planned[id], item)
		} else {
			others = append(others, item)
		}
	}
	var match []partitionMatch
	var stored []value
	for item := range s.eachItem {
		var m partitionMatch
		if context := item.get(contextKey); context.exists() {
			id := normal.of(context)
			if same := planned[id]; len(same) > 0 {
				m.planned = same[0]
				planned[id] = same[min(1, len(same)-1):]
			}
		}
		match, stored = append(match, m), append(stored, item)
	}

	equals := map[string][]int{} // places among the others, by content
	for i, item := range others {
		content := normal.of(item)
		equals[content] = append(equals[content], i)
	}
	taken := make([]bool, len(others))
	var left []int
	for i, item := range stored {
		if item.get(contextKey).exists() {
			continue
		}
		content := normal.of(item)
		if same := equals[content]; len(same) > 0 {
			match[i].planned, equals[content], taken[same[0]] = item, same[1:], true
		} else {
			left = append(left, i)
		}
	}
	next := 0
	for _, i := range left {
		for next < len(others) && taken[next] {
			next++
		}
		if next == len(others) {
			break
		}
		match[i] = partitionMatch{planned: others[next], guessed: len(left) > 1}
		next++
	}
	return match
}

func partitionName(item value, i int) string {
	if context := item.get(contextKey); context.exists() {
		return contextText(context)
	}
	return "#" + strconv.Itoa(i+1)
}
