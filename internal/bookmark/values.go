package bookmark

import "strings"

// ReplicationValues returns how far each stream of d has been read, as text:
// the replication_key_value of its bookmark; else the value under the key that
// replication_key names; else "<log_file>:<log_pos>"; else its only value, or
// all of its values as "created=1763596800, cursor=abc", without what is no
// position or only refines one, such as Kafka's timestamp beside its offset. A
// bookmark may also be a single value.
//
// A partition has an entry "<stream>[org=acme, repo=web]", an object inside of
// a bookmark an entry "<stream>.<key>". A stream without a value has none.
func ReplicationValues(d Document) map[string]string {
	values := map[string]string{}
	state := d.root().get(singerStateKey)
	for m := range state.eachMember {
		if !noStream[m.key] {
			collect(values, m.key, m.value)
		}
	}
	for m := range state.get(bookmarksKey).eachMember {
		collect(values, m.key, m.value)
	}
	return values
}

func collect(values map[string]string, name string, v value) {
	if own := ownValue(v); own != "" {
		values[valid(name)] = valid(own)
	}
	for m := range v.eachMember {
		switch {
		case noPosition[m.key]:
		case m.key == partitionsKey && m.value.kind() == kindArray:
			var i int
			for item := range m.value.eachItem {
				collect(values, name+"["+partitionName(item, i)+"]", item)
				i++
			}
		case m.value.kind() == kindObject:
			collect(values, name+"."+m.key, m.value)
		}
	}
}

// ownValue returns the text of a single value or of an object's own values.
func ownValue(v value) string {
	if v.kind() != kindObject {
		return singleValue(v)
	}
	if own := singleValue(v.get(replicationKeyValue)); own != "" {
		return own
	}
	if named := v.get(replicationKey); named.kind() == kindText {
		if own := singleValue(v.get(named.string())); own != "" {
			return own
		}
	}
	file, pos := singleValue(v.get(logFileKey)), singleValue(v.get(logPosKey))
	if file != "" && pos != "" {
		return file + ":" + pos
	}
	second := map[string]bool{}
	for _, pair := range pairs {
		second[pair[1]] = singleValue(v.get(pair[0])) != ""
	}
	var single string
	var all []string
	for _, m := range v.members() {
		if own := singleValue(m.value); own != "" && !noPosition[m.key] && !second[m.key] {
			single = own
			all = append(all, m.key+"="+own)
		}
	}
	if len(all) == 1 {
		return single
	}
	return strings.Join(all, ", ")
}

// singleValue returns the text of a string or number, "" for anything else.
func singleValue(v value) string {
	switch v.kind() {
	case kindText:
		return v.string()
	case kindNumber:
		return v.raw()
	default:
		return ""
	}
}
