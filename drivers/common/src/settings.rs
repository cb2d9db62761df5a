//! What a node and a station of any driver are made with.
//!
//! Decides: what must fit together before anything starts. Leaves to others: the settings themselves, which are the core's, and where
//! things run. Believes: no clock. Bounded by: as many stations as `ClientLimits::links`.

use std::path::PathBuf;

use tidings::crypto::Signer;
use tidings::{Client, ClientConfig, Station, StationConfig};
use tidings_tls::{NodeKey, Tls};

use crate::{
    AddressError, Answerer, Answers, Clock, DoorLimits, Doors, EpochFile, ListenAddress,
    StartError, StationAddress,
};

/// A node's key, its settings and its stations.
#[derive(Debug)]
#[must_use = "nothing runs before it is started"]
pub struct NodeSettings {
    key: NodeKey,
    config: ClientConfig,
    epoch_file: Option<PathBuf>,
    targets: Vec<StationAddress>,
    answers: Answerer,
}

/// What a driver starts a node with.
#[derive(Debug)]
#[non_exhaustive]
pub struct NodeParts {
    /// The machine.
    pub client: Client,
    /// The clock it was told first.
    pub clock: Clock,
    /// Where its stations are, by `StationRef`.
    pub targets: Vec<StationAddress>,
    /// What it dials those of them with that are reached over TLS.
    pub tls: Option<Tls>,
    /// Where its epochs are kept.
    pub epochs: Option<EpochFile>,
}

impl NodeSettings {
    /// A node that signs with this key.
    pub fn new(signer: impl Signer + 'static) -> Self {
        let key = NodeKey::new(signer);
        Self {
            config: ClientConfig::new(key.clone()),
            key,
            epoch_file: None,
            targets: Vec::new(),
            answers: Answerer::default(),
        }
    }

    /// Changes the core's settings, all but its stations and its epochs.
    pub fn configure(mut self, change: impl FnOnce(ClientConfig) -> ClientConfig) -> Self {
        self.config = change(self.config);
        self
    }

    /// A station to connect to: `tls://NODE_ID@HOST:PORT`, which is that station and no other; on this host also `tcp://HOST:PORT` or
    /// `tcp://NODE_ID@HOST:PORT`, which is not encrypted. May be called again for more stations, up to `ClientLimits::links`. A host's
    /// name is looked up at each dial, and its addresses are tried in turn; for `tcp://` it is also looked up now, which blocks.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong and what to write instead. Plain TCP is for loopback alone. A station is named once: two links to
    /// it would pass for two stations.
    pub fn station(mut self, address: &str) -> Result<Self, AddressError> {
        let target = StationAddress::parse(address)?;
        target.is_none_of(&self.targets)?;
        self.config = self.config.station(target.pin);
        self.targets.push(target);
        Ok(self)
    }

    /// The file beside the key that remembers under which epochs it has published, made with [`EpochFile::create`] when the key is.
    /// Nothing is published under an epoch before it is written there. Default: none.
    pub fn epoch_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.epoch_file = Some(path.into());
        self
    }

    /// Who answers what the node asks: the keys of its groups, and whether publishers that have to be looked up may speak. It is asked on a thread of
    /// its own, so that it may take its time. Default: [`Nobody`](crate::Nobody), so that nothing sealed is opened. In a loop of the application's
    /// own, questions are handed out as `Action::Ask` instead.
    pub fn answers(mut self, answers: impl Answers + 'static) -> Self {
        self.answers = Answerer::new(answers);
        self
    }

    /// Whom a driver asks.
    pub fn answerer(&self) -> Answerer {
        self.answers.clone()
    }

    /// Checks them, and makes the machine.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn build(self) -> Result<NodeParts, StartError> {
        if self.targets.is_empty() {
            return Err(StartError::NoStation);
        }
        let secure = self.targets.iter().any(|target| target.secure);
        let tls = secure.then(|| Tls::new(&self.key)).transpose()?;
        let local = self.targets.iter().any(|target| !target.secure);
        let mut config = self.config.allow_local(local);
        let epochs = self.epoch_file.map(EpochFile::open).transpose()?;
        if let Some(epochs) = &epochs {
            config = config.last_epoch(epochs.kept()).keep_epochs(true);
        }
        let config = config.build()?;
        let (seed, entropy) = crate::draw()?;
        let clock = Clock::start();
        Ok(NodeParts {
            client: Client::new(config, seed, entropy, clock.now()),
            clock,
            targets: self.targets,
            tls,
            epochs,
        })
    }
}

/// A station's key, its settings and where it listens.
#[derive(Debug)]
#[must_use = "nothing runs before it is started"]
pub struct StationSettings {
    key: NodeKey,
    config: StationConfig,
    listen: Option<ListenAddress>,
    doors: DoorLimits,
}

/// What a driver starts a station with.
#[derive(Debug)]
#[non_exhaustive]
pub struct StationParts {
    /// The machine.
    pub station: Station,
    /// The clock it was told first.
    pub clock: Clock,
    /// Where it is to listen.
    pub listen: ListenAddress,
    /// What it answers there with, where that is over TLS.
    pub tls: Option<Tls>,
    /// Who may come in there.
    pub doors: Doors,
}

impl StationSettings {
    /// A station whose identity is this key.
    pub fn new(signer: impl Signer + 'static) -> Self {
        let key = NodeKey::new(signer);
        Self {
            config: StationConfig::new(key.clone()),
            key,
            listen: None,
            doors: DoorLimits::default(),
        }
    }

    /// Changes the core's settings.
    pub fn configure(mut self, change: impl FnOnce(StationConfig) -> StationConfig) -> Self {
        self.config = change(self.config);
        self
    }

    /// Where to listen: `tls://0.0.0.0:7400`, which is what `0.0.0.0:7400` means, or on this host alone `tcp://127.0.0.1:7400`. Port 0
    /// takes any that is free. Called again, the last one counts.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong and what to write instead. Plain TCP is for loopback alone.
    pub fn listen(mut self, at: &str) -> Result<Self, AddressError> {
        self.listen = Some(ListenAddress::parse(at)?);
        Ok(self)
    }

    /// How many connections it has, of one address and in all. Default: `DoorLimits::default()`.
    pub fn doors(mut self, limits: DoorLimits) -> Self {
        self.doors = limits;
        self
    }

    /// Whether it listens for TLS.
    pub fn is_secure(&self) -> bool {
        self.listen.is_some_and(|listen| listen.secure)
    }

    /// Checks them, and makes the machine.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn build(self) -> Result<StationParts, StartError> {
        let listen = self.listen.ok_or(StartError::NotListening)?;
        let tls = listen.secure.then(|| Tls::new(&self.key)).transpose()?;
        let config = self.config.allow_local(!listen.secure).build()?;
        self.doors.check()?;
        let doors = Doors::new(self.doors, config.limits().links);
        let (seed, entropy) = crate::draw()?;
        let clock = Clock::start();
        Ok(StationParts {
            station: Station::new(config, seed, entropy, clock.now()),
            clock,
            listen,
            tls,
            doors,
        })
    }
}
