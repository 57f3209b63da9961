package statestore

// Waiting counts the writes that wait for a group of the table to end.
func (s *Store) Waiting(at Address) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting[lane{table: at.table()}])
}
