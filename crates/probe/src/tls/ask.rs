//! Sends one ClientHello and reads the server's answer.

use super::answer::{Assembler, TlsAnswer, Until, header};
use super::hello::{Hello, KeyShare};
use super::version::Version;
use crate::error::ProbeError;
use crate::starttls::Starttls;
use crate::visit::{Connection, Visit};

/// Address of a TLS server, with the parameters of connections to it.
#[derive(Debug)]
pub(crate) struct TlsTarget<'v> {
    pub visit: &'v Visit,
    pub starttls: Option<Starttls>,
    /// Host name for SNI.
    pub name: Option<String>,
}

/// What one ClientHello offers to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    pub version: Version,
    pub suites: &'a [u16],
    pub groups: &'a [u16],
    pub share: Option<KeyShare>,
    pub extras: bool,
}

impl<'v> TlsTarget<'v> {
    /// Opens a connection, and runs STARTTLS if requested, so that the next byte is TLS.
    pub fn open(&self) -> Result<Connection<'v>, ProbeError> {
        let mut connection = self.visit.open()?;
        if let Some(starttls) = self.starttls {
            let host = self.name.as_deref().unwrap_or("localhost");
            starttls.begin(&mut connection, host)?;
        }
        Ok(connection)
    }

    /// Returns the name that the TLS library receives: the SNI name if there is one, else the address.
    pub fn any_name(&self) -> String {
        let address = || self.visit.place().address.ip().to_string();
        self.name.clone().unwrap_or_else(address)
    }

    /// Sends a ClientHello and reads the answer. The connection stays open for further messages.
    pub fn say(
        &self,
        offer: Offer<'_>,
        until: Until,
    ) -> Result<(Connection<'v>, TlsAnswer), ProbeError> {
        let mut connection = self.open()?;
        let hello = Hello {
            version: offer.version,
            suites: offer.suites,
            groups: offer.groups,
            server_name: self.name.as_deref(),
            share: offer.share.unwrap_or(KeyShare::Empty),
            heartbeat: offer.extras,
            compression: offer.extras,
            random: self.visit.random(),
            renegotiates: &[],
        };
        connection.expect("the answer to a hello of TLS");
        connection.send(&hello.record())?;
        let answer = read(&mut connection, until)?;
        Ok((connection, answer))
    }

    /// Calls [`Self::say`], and repeats the call once if the connection fails. Without the repetition, a lost packet or
    /// a restarting server would look like a refusal.
    pub fn ask(&self, offer: Offer<'_>, until: Until) -> Result<TlsAnswer, ProbeError> {
        match self.say(offer, until) {
            Ok((_, answer)) => Ok(answer),
            Err(ProbeError::Deadline { after }) => Err(ProbeError::Deadline { after }),
            Err(_) => self.say(offer, until).map(|(_, answer)| answer),
        }
    }
}

/// Reads records until the server's answer is complete.
pub(crate) fn read(connection: &mut Connection<'_>, until: Until) -> Result<TlsAnswer, ProbeError> {
    let mut assembler = Assembler::new(until);
    loop {
        let (kind, body) = record(connection)?;
        if let Some(answer) = assembler.record(kind, &body)? {
            return Ok(answer);
        }
    }
}

/// Reads a record and returns its type and body.
pub(crate) fn record(connection: &mut Connection<'_>) -> Result<(u8, Vec<u8>), ProbeError> {
    let head = connection.take(5)?;
    let head = [head[0], head[1], head[2], head[3], head[4]];
    let (kind, length) = header(head)?;
    Ok((kind, connection.take(length)?))
}
