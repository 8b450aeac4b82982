package kv

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"os"
	"strconv"

	consulapi "github.com/hashicorp/consul/api"
)

// checkPair refuses a client certificate without its key, and the reverse.
func (c Config) checkPair() error {
	cert := cmp.Or(c.CertFile, os.Getenv(consulapi.HTTPClientCert))
	key := cmp.Or(c.KeyFile, os.Getenv(consulapi.HTTPClientKey))
	switch {
	case cert == "" && key != "":
		return fmt.Errorf("key of the client certificate %s: without the certificate: give it with --consul-client-cert", key)
	case cert != "" && key == "":
		return fmt.Errorf("client certificate %s: without its key: give it with --consul-client-key", cert)
	}
	return nil
}

// checkEnv refuses what the library would misread in silence: it takes a
// mistyped CONSUL_HTTP_SSL_VERIFY for false, and then verifies nothing.
func checkEnv() error {
	for _, name := range []string{consulapi.HTTPSSLEnvName, consulapi.HTTPSSLVerifyEnvName} {
		if value := os.Getenv(name); value != "" {
			if _, err := strconv.ParseBool(value); err != nil {
				return fmt.Errorf("variable %s=%q: want true or false", name, value)
			}
		}
	}
	return nil
}

// newTLS reads the authorities and the client certificate; the latter, if renew,
// also anew for each connection.
func newTLS(conf consulapi.TLSConfig, renew bool) (*tls.Config, error) {
	if err := checkRegular(renew, conf.CAFile); err != nil {
		return nil, fmt.Errorf("reading the certificate of the CA: %w", err)
	}
	var certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	if conf.CertFile != "" {
		var err error
		if certificate, err = clientCertificate(conf.CertFile, conf.KeyFile, renew); err != nil {
			return nil, err
		}
		conf.CertFile, conf.KeyFile = "", ""
	}
	secure, err := consulapi.SetupTLSConfig(&conf)
	if err != nil {
		return nil, err
	}
	secure.GetClientCertificate = certificate
	return secure, nil
}

// checkRegular refuses, of files that are read again, those that can be read only
// once or never end: they hold the reader at the start, past SIGTERM. What is not
// there is left to the reader.
func checkRegular(again bool, files ...string) error {
	for _, file := range files {
		if info, err := os.Stat(file); again && err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file (%s)", file, info.Mode().Type())
		}
	}
	return nil
}

// clientCertificate returns a function that returns the client certificate. If
// renew it reads it anew each time, so that a renewed one is used without a restart.
func clientCertificate(certFile, keyFile string, renew bool) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	load := func() (*tls.Certificate, error) {
		if err := checkRegular(renew, certFile, keyFile); err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate %s with its key %s: %w", certFile, keyFile, err)
		}
		return &cert, nil
	}
	first, err := load()
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if renew {
			return load()
		}
		return first, nil
	}, err
}
