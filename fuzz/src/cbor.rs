//! WIRE.md section 2, as a recursive reader into an owned tree.

/// A value under the rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Integer(i64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
    Float(u64),
    Simple(u8),
}

impl Tree {
    /// Levels of containers; 0 for what is none.
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(entries) => 1 + entries.iter().map(|(_, it)| it.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// The value `bytes` are, or the reason they are none. `simples`: whether `false`, `true` and `null` may stand in it.
pub fn parse(bytes: &[u8], simples: bool) -> Result<Tree, &'static str> {
    Parser {
        bytes,
        at: 0,
        items: 0,
        simples,
        tbs: false,
    }
    .whole()
}

/// The same for the `tbs` of a publication: `false`, `true` and `null` may stand inside its `payload` alone.
pub fn parse_tbs(bytes: &[u8]) -> Result<Tree, &'static str> {
    Parser {
        bytes,
        at: 0,
        items: 0,
        simples: false,
        tbs: true,
    }
    .whole()
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    items: u32,
    simples: bool,
    tbs: bool,
}

impl<'a> Parser<'a> {
    fn whole(mut self) -> Result<Tree, &'static str> {
        let tree = self.item(1, false)?;
        if self.at < self.bytes.len() {
            Err("trailing")
        } else {
            Ok(tree)
        }
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], &'static str> {
        let left = self.bytes.len() - self.at;
        if len > left as u64 {
            return Err("truncated");
        }
        let taken = &self.bytes[self.at..self.at + len as usize];
        self.at += len as usize;
        Ok(taken)
    }

    /// One item whose containers would be at `level`.
    fn item(&mut self, level: usize, key: bool) -> Result<Tree, &'static str> {
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 31);
        let width = match info {
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            28..=30 => return Err("reserved_head"),
            31 => return Err("indefinite"),
            _ => 0,
        };
        let mut argument = u64::from(info);
        if width > 0 {
            argument = self
                .take(width)?
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let fits_shorter = match width {
                1 => argument < 24,
                2 => argument <= 0xff,
                4 => argument <= 0xffff,
                _ => argument <= 0xffff_ffff,
            };
            if fits_shorter && major != 7 {
                return Err("long_head");
            }
        }
        if major == 6 {
            return Err("tag");
        }
        if major == 7 {
            let named = (20..=22).contains(&info);
            if !(25..=27).contains(&info) && !(named && self.simples) {
                return Err("simple");
            }
            if info == 25 || info == 26 || (info == 27 && !f64::from_bits(argument).is_finite()) {
                return Err("float");
            }
        }
        if major < 2 && argument > i64::MAX as u64 {
            return Err("integer_range");
        }
        if key && major != 0 && major != 1 && major != 3 {
            return Err("bad_key");
        }
        self.items += 1;
        if self.items > 131_072 {
            return Err("too_many_items");
        }
        if (major == 4 || major == 5) && level > 64 {
            return Err("too_deep");
        }
        Ok(match major {
            0 => Tree::Integer(argument as i64),
            1 => Tree::Integer(-1 - argument as i64),
            2 => Tree::Bytes(self.take(argument)?.to_vec()),
            3 => {
                let text = String::from_utf8(self.take(argument)?.to_vec());
                Tree::Text(text.map_err(|_| "bad_text")?)
            }
            4 => {
                let mut items = Vec::new();
                for _ in 0..argument {
                    items.push(self.item(level + 1, false)?);
                }
                Tree::Array(items)
            }
            5 => self.map(level, argument)?,
            _ if info == 27 => Tree::Float(argument),
            _ => Tree::Simple(info),
        })
    }

    fn map(&mut self, level: usize, entries: u64) -> Result<Tree, &'static str> {
        let mut map = Vec::new();
        let mut before: Option<&[u8]> = None;
        for _ in 0..entries {
            let from = self.at;
            let key = self.item(level + 1, true)?;
            let encoded = &self.bytes[from..self.at];
            match before.map(|before| encoded.cmp(before)) {
                Some(std::cmp::Ordering::Equal) => return Err("duplicate_key"),
                Some(std::cmp::Ordering::Less) => return Err("key_order"),
                _ => before = Some(encoded),
            }
            if self.tbs && level == 1 {
                self.simples = key == Tree::Text("payload".into());
            }
            map.push((key, self.item(level + 1, false)?));
            if self.tbs && level == 1 {
                self.simples = false;
            }
        }
        Ok(Tree::Map(map))
    }
}
