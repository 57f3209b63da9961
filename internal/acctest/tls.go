package acctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// TLSOptions say what a [TLSProxy] shows and asks for.
type TLSOptions struct {
	// ServerName is the only name in the server's certificate. Empty: 127.0.0.1 and localhost.
	ServerName string
	// RequireClientCert refuses clients without a certificate of the same authority.
	RequireClientCert bool
}

// TLSServer is a [FaultyProxy] that speaks TLS to its clients. Its certificates (PEM) come from an authority of its own.
type TLSServer struct {
	*FaultyProxy
	CACert                string
	ClientCert, ClientKey string
}

// TLSProxy starts a proxy that speaks TLS in front of host:port, which does not. It ends with the test.
func TLSProxy(tb testing.TB, target string, opts TLSOptions) *TLSServer {
	tb.Helper()
	ca := newAuthority(tb)
	server := x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if opts.ServerName != "" {
		server.DNSNames = []string{opts.ServerName}
	} else {
		server.DNSNames = []string{"localhost"}
		server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	serverCert, serverKey := ca.issue(tb, server)
	clientCert, clientKey := ca.issue(tb, x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})

	pair, err := tls.X509KeyPair([]byte(serverCert), []byte(serverKey))
	if err != nil {
		tb.Fatalf("load the server's certificate: %v", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if opts.RequireClientCert {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AddCert(ca.cert)
	}
	return &TLSServer{
		FaultyProxy: newProxy(tb, target, func(l net.Listener) net.Listener { return tls.NewListener(l, config) }),
		CACert:      encodePEM("CERTIFICATE", ca.cert.Raw),
		ClientCert:  clientCert,
		ClientKey:   clientKey,
	}
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) authority {
	tb.Helper()
	key := newKey(tb)
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der := sign(tb, template, template, key, key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatalf("parse the authority's certificate: %v", err)
	}
	return authority{cert: cert, key: key}
}

// issue returns a certificate and its key, both PEM.
func (a authority) issue(tb testing.TB, template x509.Certificate) (cert, key string) {
	tb.Helper()
	template.Subject = pkix.Name{CommonName: "test"}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	private := newKey(tb)
	der := sign(tb, &template, a.cert, private, a.key)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatalf("marshal a key: %v", err)
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", keyDER)
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("generate a key: %v", err)
	}
	return key
}

// sign makes a certificate for the owner of a key, valid for a day around now, which forgives clocks that are off.
func sign(tb testing.TB, template, parent *x509.Certificate, owner, signer *ecdsa.PrivateKey) []byte {
	tb.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		tb.Fatalf("draw a serial number: %v", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-12 * time.Hour)
	template.NotAfter = time.Now().Add(12 * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &owner.PublicKey, signer)
	if err != nil {
		tb.Fatalf("sign a certificate: %v", err)
	}
	return der
}

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
