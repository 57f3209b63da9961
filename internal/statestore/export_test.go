package statestore

// Waiting counts the writes that wait for a group of the table to end.
func (s *Store) Waiting(at Address) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting[lane{table: at.table()}])
}

// AtStep has a function called at each step of an upgrade; its error ends the upgrade there, as a crash would.
func (s *Store) AtStep(do func(step string) error) { s.atStep = do }
