// SPDX-License-Identifier: MIT
package org.redlockd;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.NoSuchAlgorithmException;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * The access token, which may be replaced, and the files for TLS. Errors never contain the token.
 */
final class Identity {
    private static final int LONGEST_TOKEN = 4096; // it is sent in a header as it is
    private static final Pattern KEY = Pattern.compile(
        "-----BEGIN PRIVATE KEY-----(.+?)-----END PRIVATE KEY-----", Pattern.DOTALL);

    /** null: those of the JVM, without a certificate of this client. */
    final SSLContext tls;
    private final Path file; // of the token; null: it is not from a file
    private volatile String token; // null: there is none

    /** What is null is omitted. Throws IllegalArgumentException. */
    Identity(String token, Path tokenFile, Path ca, Path cert, Path key) {
        refuse(token != null && tokenFile != null,
            "give either an access token or a file that has it");
        refuse(key != null && cert == null, "a key without a certificate: name its certificate");
        file = tokenFile;
        this.token = tokenFile != null ? read()
            : token == null ? null : checked(token, "the access token");
        tls = ca == null && cert == null ? null : context(ca, cert, key == null ? cert : key);
    }

    private static void refuse(boolean is, String why) {
        if (is) {
            throw new IllegalArgumentException(why);
        }
    }

    /** The value of the header; null: there is no token. */
    String authorization() {
        return token == null ? null : "Bearer " + token;
    }

    /**
     * After a 401: reads the file again. Whether the token differs from the refused value now:
     * another thread may have read it first. A file that cannot be read, or is half written,
     * changes nothing.
     */
    boolean refresh(String refused) {
        if (file == null) {
            return false;
        }
        try {
            token = read();
        } catch (IllegalArgumentException e) {
            // the token stays
        }
        return !authorization().equals(refused);
    }

    private String read() {
        try {
            return checked(text(file).replaceFirst("\r?\n\\z", ""), "the access token in " + file);
        } catch (IOException e) {
            throw new IllegalArgumentException("cannot read the file of the access token, " + file);
        }
    }

    /** Files.readString() would fail in a thread that is interrupted. */
    private static String text(Path file) throws IOException {
        try (InputStream stream = new FileInputStream(file.toFile())) {
            return new String(stream.readAllBytes(), StandardCharsets.ISO_8859_1);
        }
    }

    private static String checked(String token, String where) {
        refuse(!token.matches("[!-~]+") || token.length() > LONGEST_TOKEN,
            where + " is not 1 to 4096 ASCII letters, digits and signs");
        return token;
    }

    // ---- TLS -----------------------------------------------------------------------------------

    private static SSLContext context(Path ca, Path cert, Path key) {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            KeyManagerFactory own = null;
            if (cert != null) {
                KeyStore store = emptyStore();
                store.setKeyEntry("own", privateKey(key), new char[0],
                    certificates(cert).toArray(new Certificate[0]));
                own = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
                own.init(store, new char[0]);
            }
            TrustManagerFactory trust = null;
            if (ca != null) {
                KeyStore store = emptyStore();
                for (Certificate one : certificates(ca)) {
                    store.setCertificateEntry("ca" + store.size(), one);
                }
                trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
                trust.init(store);
            }
            context.init(own == null ? null : own.getKeyManagers(),
                trust == null ? null : trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException | IOException e) {
            throw new IllegalArgumentException("the files for TLS: " + e.getMessage(), e);
        }
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Collection<? extends Certificate> certificates(Path file)
            throws GeneralSecurityException, IOException {
        try (InputStream stream = Files.newInputStream(file)) {
            Collection<? extends Certificate> all =
                CertificateFactory.getInstance("X.509").generateCertificates(stream);
            refuse(all.isEmpty(), "no certificate in " + file);
            return all;
        }
    }

    private static PrivateKey privateKey(Path file) throws GeneralSecurityException, IOException {
        Matcher found = KEY.matcher(text(file));
        refuse(!found.find(), file + " has no \"BEGIN PRIVATE KEY\": convert it with "
            + "openssl pkcs8 -topk8 -nocrypt");
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(
            Base64.getMimeDecoder().decode(found.group(1)));
        for (String kind : List.of("RSA", "EC", "EdDSA")) {
            try {
                return KeyFactory.getInstance(kind).generatePrivate(spec);
            } catch (InvalidKeySpecException | NoSuchAlgorithmException e) {
                // another kind
            }
        }
        throw new InvalidKeySpecException(file + " has a key of an unknown kind");
    }
}
