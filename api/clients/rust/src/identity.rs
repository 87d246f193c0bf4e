// SPDX-License-Identifier: MIT
//! The access token, which may be replaced, and the files for TLS.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use openssl::pkey::PKey;
use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use openssl::x509::store::X509StoreBuilder;

use crate::error::Error;
use crate::sync::locked;

/// It is sent in a header as it is.
const LONGEST_TOKEN: usize = 4096;

/// What the caller gave; what is omitted comes from the environment. Errors never
/// contain the token.
#[derive(Clone, Default)]
pub(crate) struct Files {
    pub auth_token: Option<String>,
    pub auth_token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn invalid(text: String) -> Error {
    Error::Invalid(text)
}

impl Files {
    fn with_environment(mut self) -> Files {
        if self.auth_token.is_none() && self.auth_token_file.is_none() {
            self.auth_token = variable("REDLOCKD_AUTH_TOKEN");
            self.auth_token_file = variable("REDLOCKD_AUTH_TOKEN_FILE").map(PathBuf::from);
        }
        if self.ca_file.is_none() && self.cert_file.is_none() && self.key_file.is_none() {
            self.ca_file = variable("REDLOCKD_CACERT").map(PathBuf::from);
            self.cert_file = variable("REDLOCKD_CERT").map(PathBuf::from);
            self.key_file = variable("REDLOCKD_KEY").map(PathBuf::from);
        }
        self
    }
}

pub(crate) struct Identity {
    file: Option<PathBuf>,
    token: Mutex<Option<String>>,
    pub tls: SslConnector,
}

impl Identity {
    pub fn new(files: Files) -> Result<Identity, Error> {
        let files = files.with_environment();
        if files.auth_token.is_some() && files.auth_token_file.is_some() {
            let wrong = "give either an access token or a file that has it";
            return Err(invalid(wrong.into()));
        }
        let token = match (&files.auth_token, &files.auth_token_file) {
            (Some(token), _) => Some(checked(token, "the access token")?),
            (_, Some(file)) => Some(read(file)?),
            _ => None,
        };
        Ok(Identity {
            tls: connector(&files)?,
            file: files.auth_token_file,
            token: Mutex::new(token),
        })
    }

    pub fn token(&self) -> Option<String> {
        locked(&self.token).clone()
    }

    /// After a 401: reads the file again. Whether the token differs from the refused
    /// one now: another thread may have read it first. A file that cannot be read, or
    /// is half written, changes nothing.
    pub fn refresh(&self, refused: &Option<String>) -> bool {
        let file = match &self.file {
            Some(file) => file,
            None => return false,
        };
        let now = read(file).ok();
        let mut token = locked(&self.token);
        if now.is_some() {
            *token = now;
        }
        *token != *refused
    }
}

fn read(file: &Path) -> Result<String, Error> {
    let shown = file.display();
    let unreadable = |_| invalid(format!("cannot read the file of the access token, {shown}"));
    let text = fs::read_to_string(file).map_err(unreadable)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    checked(line, &format!("the access token in {shown}"))
}

fn checked(token: &str, what: &str) -> Result<String, Error> {
    let is_right =
        (1..=LONGEST_TOKEN).contains(&token.len()) && token.bytes().all(|c| c.is_ascii_graphic());
    if is_right {
        return Ok(token.to_owned());
    }
    let wrong = "is not 1 to 4096 ASCII letters, digits and signs";
    Err(invalid(format!("{what} {wrong}")))
}

fn content(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| invalid(format!("cannot read {}: {error}", file.display())))
}

fn connector(files: &Files) -> Result<SslConnector, Error> {
    let broken = |error| invalid(format!("TLS: {error}"));
    let mut tls = SslConnector::builder(SslMethod::tls_client()).map_err(broken)?;
    tls.set_min_proto_version(Some(SslVersion::TLS1_2))
        .map_err(broken)?;
    if let Some(file) = &files.ca_file {
        content(file)?;
        // instead of those of the system
        let none = X509StoreBuilder::new().map_err(broken)?.build();
        tls.set_cert_store(none);
        tls.set_ca_file(file)
            .map_err(|error| invalid(format!("{}: {error}", file.display())))?;
    }
    let cert = match (&files.cert_file, &files.key_file) {
        (Some(cert), _) => cert,
        (None, None) => return Ok(tls.build()),
        (None, Some(_)) => {
            let wrong = "a key file without a certificate file: name its certificate";
            return Err(invalid(wrong.into()));
        }
    };
    let key = files.key_file.as_ref().unwrap_or(cert);
    content(cert)?;
    let wrong = |error| invalid(format!("{}, {}: {error}", cert.display(), key.display()));
    tls.set_certificate_chain_file(cert).map_err(wrong)?;
    // without a passphrase: OpenSSL would ask on the terminal
    let key = PKey::private_key_from_pem_passphrase(&content(key)?, b"").map_err(wrong)?;
    tls.set_private_key(&key).map_err(wrong)?;
    tls.check_private_key().map_err(wrong)?;
    Ok(tls.build())
}
