// SPDX-License-Identifier: MIT

package user

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/api/clients/go"
)

const token, nextToken = "first+token/of~2026==", "second.token"

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folder, "new"), []byte(text), 0o600))
	must(t, os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, name)))
	return filepath.Join(folder, name)
}

func knowing(t *testing.T, known string, fields m) *fake {
	f := newFake(t, fields)
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		f.on(method, knows(known))
	}
	return f
}

func cycle(c *redlockd.Client) error {
	lock, err := c.Acquire(background, wanted())
	if err != nil {
		return err
	}
	return lock.Release(background)
}

func TestTheTokenIsSentWithEachRequest(t *testing.T) {
	t.Parallel()
	file := write(t, t.TempDir(), "token", token+"\n")
	for _, config := range []redlockd.Config{{Token: token}, {TokenFile: file}} {
		f := knowing(t, token, m{"renew_after_ms": 1})
		lock := acquire(t, newClient(t, config, f), wanted())
		waitUntil(t, func() bool { return f.count("PUT") > 0 }, "an extend")
		must(t, lock.Release(background))
		for _, one := range f.of("") {
			equal(t, one.header.Get("Authorization"), "Bearer "+token)
		}
	}
}

func TestTheTokenComesFromTheEnvironment(t *testing.T) {
	f := knowing(t, token, nil)
	t.Setenv("REDLOCKD_AUTH_TOKEN_FILE", write(t, t.TempDir(), "token", token))
	must(t, cycle(newClient(t, redlockd.Config{}, f)))
	os.Unsetenv("REDLOCKD_AUTH_TOKEN_FILE")
	t.Setenv("REDLOCKD_AUTH_TOKEN", token)
	must(t, cycle(newClient(t, redlockd.Config{}, f)))
	t.Setenv("REDLOCKD_AUTH_TOKEN", "wrong")
	must(t, cycle(newClient(t, redlockd.Config{Token: token}, f)))
}

func TestTheTokenIsReplaced(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := knowing(t, nextToken, nil)
	client := newClient(t, redlockd.Config{TokenFile: write(t, folder, "token", token)}, f)
	write(t, folder, "token", nextToken)
	must(t, cycle(client))
	var sent []string
	for _, one := range f.of("") {
		sent = append(sent, one.header.Get("Authorization"))
	}
	equal(t, sent, []string{"Bearer " + token, "Bearer " + nextToken, "Bearer " + nextToken})
}

func TestTheLockOutlivesAReplacementThatTakesAWhile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := write(t, folder, "token", token)
	f := knowing(t, token, m{"renew_after_ms": 20, "validity_ms": 9000, "ttl_ms": 9000})
	lock := acquire(t, newClient(t, redlockd.Config{TokenFile: file}, f), wanted())
	f.on("PUT", knows(nextToken)).on("DELETE", knows(nextToken))
	before := f.count("PUT")
	waitUntil(t, func() bool { return f.count("PUT") > before+2 }, "401s")
	must(t, os.Remove(file))
	before = f.count("PUT")
	waitUntil(t, func() bool { return f.count("PUT") > before }, "one more")
	left := lock.Remaining()
	write(t, folder, "token", nextToken)
	waitUntil(t, func() bool { return lock.Remaining() > left }, "extended")
	must(t, lock.Release(background))
}

func TestBadTokensAreTold(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for text, reason := range map[string]string{"": "empty", "\n": "empty",
		token + "\n\n": "more than one line", token + " ": "ASCII", token + "é": "ASCII",
		token + "\x00": "ASCII", strings.Repeat("x", 4097): "4096"} {
		file := write(t, folder, "token", text)
		_, err := redlockd.New(redlockd.Config{TokenFile: file})
		isTrue(t, err != nil && strings.Contains(err.Error(), reason), reason)
		isTrue(t, strings.Contains(err.Error(), file), "the file")
		isTrue(t, !strings.Contains(err.Error(), token), "not the token")
	}
	_, err := redlockd.New(redlockd.Config{TokenFile: folder + "/none"})
	isTrue(t, errors.Is(err, os.ErrNotExist), "no file")
	_, err = redlockd.New(redlockd.Config{Token: token, TokenFile: folder})
	isTrue(t, err != nil && strings.Contains(err.Error(), "either"), "either")
	_, err = redlockd.New(redlockd.Config{Token: token + "\r\nX-Lock-Token: 1"})
	isTrue(t, err != nil && !strings.Contains(err.Error(), token), "two lines")
}

// shownOf is all that fmt can show of it.
func shownOf(what ...any) string {
	text := ""
	for _, one := range what {
		text += fmt.Sprintf("%v %+v %#v %s %q ", one, one, one, one, one)
	}
	return text
}

func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	f := knowing(t, token, m{"renew_after_ms": 20})
	var logged []string
	config := redlockd.Config{Token: token, URLs: []string{strings.Replace(f.URL,
		"//", "//me:password@", 1)}, Logf: func(text string, with ...any) {
		logged = append(logged, fmt.Sprintf(text, with...))
	}}
	client := newClient(t, config)
	lock := acquire(t, client, wanted())
	f.on("PUT", nil, noQuorum, gone).on("DELETE", notOwner)
	ends(t, lock.Context())
	secret := lock.Token()
	text := shownOf(config, &config, client, lock, lock.Context(), lock.Err(),
		lock.Release(background), struct{ l *redlockd.Lock }{lock},
		struct{ c *redlockd.Client }{client})
	f.on("POST", problem(401, "unauthorized", nil), noQuorum)
	_, err := client.Acquire(background, wanted())
	f.on("POST", cut)
	_, other := client.Acquire(background, redlockd.Options{Resources: []string{"a"}, Wait: redlockd.NoWait})
	text += shownOf(err, other, logged)
	isTrue(t, len(logged) > 2, "some was logged")
	for _, hidden := range []string{secret, token, "password",
		f.of("POST")[0].header.Get("Idempotency-Key")} {
		isTrue(t, !strings.Contains(text, hidden), hidden+" in "+text)
	}
}

// ---- TLS -----------------------------------------------------------------------

// authority makes certificates in a folder: name.pem and name.key.
type authority struct {
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, folder, name string) *authority {
	a := &authority{folder: folder}
	a.cert, a.key = a.make(t, name, "", time.Hour)
	return a
}

func (a *authority) make(t *testing.T, name, address string,
	left time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must(t, err)
	want := &x509.Certificate{SerialNumber: number,
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(left),
		BasicConstraintsValid: true}
	if address != "" {
		want.IPAddresses = []net.IP{net.ParseIP(address)}
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		want.IsCA, parent, signer = true, want, key
	}
	content, err := x509.CreateCertificate(rand.Reader, want, parent, &key.PublicKey, signer)
	must(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	write(t, a.folder, name+".pem", string(pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: content})))
	write(t, a.folder, name+".key", string(pem.EncodeToMemory(
		&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	cert, err := x509.ParseCertificate(content)
	must(t, err)
	return cert, key
}

func (a *authority) file(name string) string { return filepath.Join(a.folder, name) }

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) serving(t *testing.T, name string, config *tls.Config) *fake {
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	must(t, err)
	config.Certificates = []tls.Certificate{pair}
	return newFakeTLS(t, nil, config)
}

func TestCertificatesOfServers(t *testing.T) {
	folder := t.TempDir()
	ours, foreign := newAuthority(t, folder, "ca"), newAuthority(t, folder, "other")
	ours.make(t, "server", "127.0.0.1", time.Hour)
	foreign.make(t, "foreign", "127.0.0.1", time.Hour)
	trusting := redlockd.Config{CAFile: ours.file("ca.pem")}
	good := ours.serving(t, "server", &tls.Config{})
	must(t, cycle(newClient(t, trusting, good)))
	must(t, cycle(newClient(t, redlockd.Config{TLS: &tls.Config{RootCAs: ours.pool()}}, good)))
	t.Setenv("REDLOCKD_CACERT", ours.file("ca.pem"))
	must(t, cycle(newClient(t, redlockd.Config{}, good)))
	os.Unsetenv("REDLOCKD_CACERT")
	f := ours.serving(t, "foreign", &tls.Config{})
	err := cycle(newClient(t, trusting, f))
	isTrue(t, errors.Is(err, redlockd.ErrUntrusted), fmt.Sprint(err))
	equal(t, len(f.of("")), 0)
}

func TestCertificatesOfClients(t *testing.T) {
	folder := t.TempDir()
	ours, foreign := newAuthority(t, folder, "ca"), newAuthority(t, folder, "other")
	ours.make(t, "server", "127.0.0.1", time.Hour)
	ours.make(t, "client", "", time.Hour)
	foreign.make(t, "stranger", "", time.Hour)
	f := ours.serving(t, "server", &tls.Config{ClientCAs: ours.pool(),
		ClientAuth: tls.RequireAndVerifyClientCert})
	trusting := redlockd.Config{CAFile: ours.file("ca.pem")}
	mine := trusting
	mine.CertFile, mine.KeyFile = ours.file("client.pem"), ours.file("client.key")
	must(t, cycle(newClient(t, mine, f)))
	t.Setenv("REDLOCKD_CACERT", mine.CAFile)
	t.Setenv("REDLOCKD_CERT", mine.CertFile)
	t.Setenv("REDLOCKD_KEY", mine.KeyFile)
	must(t, cycle(newClient(t, redlockd.Config{}, f)))
	// replaced: the next connection has the new one
	client := newClient(t, redlockd.Config{}, f)
	for _, name := range []string{"client.pem", "client.key"} {
		text, err := os.ReadFile(ours.file(strings.Replace(name, "client", "stranger", 1)))
		must(t, err)
		write(t, folder, name, string(text))
	}
	_, err := client.Acquire(background, redlockd.Options{Resources: []string{"a"}, Wait: redlockd.NoWait})
	isTrue(t, errors.Is(err, redlockd.ErrUnavailable), fmt.Sprint(err))
}

func TestBadFilesAreTold(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ours := newAuthority(t, folder, "ca")
	ours.make(t, "client", "", time.Hour)
	ours.make(t, "other", "", time.Hour)
	pem, key := ours.file("client.pem"), ours.file("client.key")
	for text, config := range map[string]redlockd.Config{
		"no such file":      {CAFile: folder + "/none"},
		"no certificate":    {CAFile: key},
		"does not match":    {CertFile: pem, KeyFile: ours.file("other.key")},
		"KeyFile without":   {KeyFile: key},
		"give either":       {TLS: &tls.Config{}, CAFile: pem},
		"rather than a key": {CertFile: pem}} {
		_, err := redlockd.New(config)
		isTrue(t, err != nil && strings.Contains(err.Error(), text),
			fmt.Sprint(text, ": ", err))
	}
}

func TestAHungHandshakeCostsNoLock(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer hung.Close()
	good := newFake(t, nil)
	client := newClient(t, redlockd.Config{Timeout: time.Second, URLs: []string{
		"https://" + hung.Addr().String(), good.URL}})
	ctx, cancel := context.WithTimeout(background, 8*time.Second)
	defer cancel()
	lock, err := client.Acquire(ctx, wanted())
	must(t, err)
	must(t, lock.Release(background))
}
