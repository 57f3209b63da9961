package chconn

import "errors"

// Hint is what a failure to connect with this config would be explained with.
func Hint(c Config, failure string) string {
	return c.hint(errors.New(failure))
}

// ForgetFailure lets the next statement try again at once.
func (c *Client) ForgetFailure() { c.met.failure.Store(nil) }
