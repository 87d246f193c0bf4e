// SPDX-License-Identifier: MIT

package redlockd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

const longestToken = 4096

// identity is a bearer token, which may be replaced, and what TLS needs.
type identity struct {
	file  string // "": none
	mutex sync.Mutex
	// behind a function, that no %v of anything shows it
	token func() string
	tls   *tls.Config
}

func newIdentity(c *Config) (*identity, error) {
	if c.TLS != nil && (c.CAFile != "" || c.CertFile != "" || c.KeyFile != "") {
		return nil, errors.New("give either a TLS configuration or files")
	}
	token, file := c.Token, c.TokenFile
	if token == "" && file == "" {
		token = os.Getenv("REDLOCKD_AUTH_TOKEN")
		file = os.Getenv("REDLOCKD_AUTH_TOKEN_FILE")
	}
	if token != "" && file != "" {
		return nil, errors.New("give either a token or a file that has it")
	}
	i := &identity{file: file}
	var err error
	if file != "" {
		token, err = readToken(file)
	} else if token != "" {
		err = checkToken(token, "the token")
	}
	if err != nil {
		return nil, err
	}
	i.token = func() string { return token }
	i.tls, err = configureTLS(c)
	return i, err
}

// checkToken never tells the token.
func checkToken(text, where string) error {
	switch {
	case text == "":
		return fmt.Errorf("%s is empty", where)
	case strings.Contains(text, "\n"):
		return fmt.Errorf("%s has more than one line", where)
	}
	isWrong := func(r rune) bool { return r < '!' || r > '~' }
	if len(text) > longestToken || strings.IndexFunc(text, isWrong) >= 0 {
		return fmt.Errorf("%s is not 1 to %d ASCII letters, digits and signs",
			where, longestToken)
	}
	return nil
}

func readToken(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(content), "\n")
	text = strings.TrimSuffix(text, "\r")
	return text, checkToken(text, "the token file "+file)
}

// authorization is the header; "": none.
func (i *identity) authorization() string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if token := i.token(); token != "" {
		return "Bearer " + token
	}
	return ""
}

// refresh reads the file again, after a 401. Returns whether the token now
// differs from the refused header: another goroutine may have read it first. A
// file that cannot be read, or is half written, changes nothing.
func (i *identity) refresh(refused string) bool {
	if i.file == "" {
		return false
	}
	if token, err := readToken(i.file); err == nil {
		i.mutex.Lock()
		i.token = func() string { return token }
		i.mutex.Unlock()
	}
	return i.authorization() != refused
}

func configureTLS(c *Config) (*tls.Config, error) {
	if c.TLS != nil {
		return c.TLS.Clone(), nil
	}
	ca, cert, key := c.CAFile, c.CertFile, c.KeyFile
	if ca == "" && cert == "" && key == "" {
		ca = os.Getenv("REDLOCKD_CACERT")
		cert, key = os.Getenv("REDLOCKD_CERT"), os.Getenv("REDLOCKD_KEY")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		content, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s has no certificate", ca)
		}
	}
	if key != "" && cert == "" {
		return nil, errors.New("KeyFile without CertFile: name its certificate")
	}
	if cert != "" {
		if key == "" {
			key = cert
		}
		last, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.GetClientCertificate = reloading(cert, key, last)
	}
	return config, nil
}

// reloading reads the files again for each connection, so that they can be
// replaced. While they do not fit together, the last ones are used.
func reloading(cert, key string, last tls.Certificate) func(
	*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	var mutex sync.Mutex
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if next, err := tls.LoadX509KeyPair(cert, key); err == nil {
			last = next
		}
		given := last
		return &given, nil
	}
}

// isUntrusted: whether a connection failed because of the server's certificate.
func isUntrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var roots x509.SystemRootsError
	return errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &roots)
}
