package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	tenantPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	tokenPattern  = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

const maxKeyFileBytes = 1 << 20

// keyHash is the SHA-256 of an API key.
type keyHash [sha256.Size]byte

// identity is who a request belongs to.
type identity struct {
	tenant string
	share  int // percent; 0: the configured default
}

// HashKey returns the hexadecimal SHA-256 of an API key, as the key file wants it.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// ParseKeys reads a key file: lines tenant:sha256hex or tenant:sha256hex:share,
// where share is the percentage (1..100) of slots and queue that the tenant may use;
// empty lines and lines that begin with # do not count. A tenant may have several keys,
// all with one share; a key belongs to one tenant. All errors are reported, with their
// line, wrapping [ErrConfig].
func ParseKeys(data []byte) (map[keyHash]identity, error) {
	keys, shares := map[keyHash]identity{}, map[string]int{}
	var problems []error
	if len(data) > maxKeyFileBytes {
		return nil, fmt.Errorf("%w: key file of more than %d bytes", ErrConfig, maxKeyFileBytes)
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		hash, id, err := parseKeyLine(line)
		if err == nil {
			if share, seen := shares[id.tenant]; seen && share != id.share {
				err = fmt.Errorf("tenant %s has another share in an earlier line", id.tenant)
			} else if _, seen := keys[hash]; seen {
				err = errors.New("this key stands in an earlier line")
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%w: key file, line %d: %w", ErrConfig, i+1, err))
			continue
		}
		shares[id.tenant], keys[hash] = id.share, id
	}
	if len(keys) == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%w: key file without a key", ErrConfig))
	}
	return keys, errors.Join(problems...)
}

// parseKeyLine never quotes the line: someone may have put a bare key into it.
func parseKeyLine(line string) (hash keyHash, id identity, err error) {
	parts := strings.Split(line, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return hash, id, errors.New("want tenant:sha256hex or tenant:sha256hex:share")
	}
	if id.tenant = parts[0]; !tenantPattern.MatchString(id.tenant) {
		return hash, id, errors.New("the tenant's name has letters, digits, dot, dash and underscore, at most 64")
	}
	raw, err := hex.DecodeString(parts[1])
	if err != nil || len(raw) != len(hash) {
		return hash, id, errors.New("the second field is not the SHA-256 of a key (64 hexadecimal digits)")
	}
	copy(hash[:], raw)
	if len(parts) == 3 {
		id.share, err = strconv.Atoi(parts[2])
		if err != nil || id.share < 1 || id.share > 100 {
			return hash, id, errors.New("the share is not a percentage from 1 to 100")
		}
	}
	return hash, id, nil
}

// keyring is the key file in force. It reads the file again when its contents are
// older than an interval; a file that went bad leaves the last good one in force and
// is reported. Safe for concurrent use.
type keyring struct {
	path     string
	interval time.Duration
	now      func() time.Time
	report   func(error) // nil error: reloaded

	mu      sync.Mutex
	keys    map[keyHash]identity
	data    []byte
	checked time.Time
	lastErr error
}

// openKeys fails if the file is bad: a start-up error.
func openKeys(path string, interval time.Duration, now func() time.Time, report func(error)) (*keyring, error) {
	k := &keyring{path: path, interval: interval, now: now, report: report}
	data, keys, err := k.read()
	if err != nil {
		return nil, err
	}
	k.keys, k.data, k.checked = keys, data, now()
	return k, nil
}

func (k *keyring) read() ([]byte, map[keyHash]identity, error) {
	data, err := os.ReadFile(k.path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: key file: %w", ErrConfig, err)
	}
	keys, err := ParseKeys(data)
	if err != nil {
		return data, nil, fmt.Errorf("%s: %w", k.path, err)
	}
	return data, keys, nil
}

// lookup finds the identity of a key.
func (k *keyring) lookup(key string) (identity, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	id, ok := k.keys[sha256.Sum256([]byte(key))]
	return id, ok
}

// refresh reads the file again if it is time to. Called with mu held.
func (k *keyring) refresh() {
	now := k.now()
	if now.Sub(k.checked) < k.interval {
		return
	}
	k.checked = now
	data, keys, err := k.read()
	switch {
	case err != nil:
		if k.lastErr == nil || k.lastErr.Error() != err.Error() {
			k.report(err)
		}
		k.lastErr = err
	case k.lastErr != nil || !bytes.Equal(data, k.data):
		k.keys, k.data, k.lastErr = keys, data, nil
		k.report(nil)
	}
}

// state is the number of keys in force and what is wrong with the file, if anything.
func (k *keyring) state() (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	return len(k.keys), k.lastErr
}
