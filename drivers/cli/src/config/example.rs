//! A configuration file with every key in it, each with what it means and its default.
//!
//! Decides: their order and words. Leaves to others: what a key is and may be; a test reads this text and compares it with the defaults.
//! Believes: no clock. Bounded by: a constant.

/// The whole file. Where a key stands behind `#`, it has no default.
pub(super) const TEXT: &str = r#"# tidings: settings of a station and of a node. Both parts may be left out, and so may every key; what stands here is the default.
# Paths are relative to this file. Spans are "500ms", "30s", "10m", "1h"; bytes are numbers or "64KiB", "256MiB", "1GiB".
# tidings config check FILE says what is wrong in a file; the command line counts before it.

[station]                              # tidings station --config FILE
listen = "tcp://127.0.0.1:7400"        # this host alone; "tls://0.0.0.0:7400" for everybody who knows the station's node id
#key = "station.key"                   # made by tidings keygen; without one there is a new identity with every start
probe_every = "30s"                    # each node is asked so often whether it is there; two missed answers end its link
max_frame = "1MiB"                     # the longest frame read
pin = []                               # names of realms that keep a place, whoever else subscribes
gateways = []                          # node ids that may publish what others signed

[station.limits]                       # the bound of everything; beyond it is refused or given up, and counted
links = 16384                          # at once
subscribed_realms = 1000               # a quarter of them for one node
topics = 10000                         # with a ring, all realms together
subscribers_per_topic = 10000
subscriptions_per_link = 1024
filters_per_link = 64                  # subscriptions with wildcards
ring_items = 10000                     # publications kept of each topic, for readers that are behind or come back
ring_bytes = "256MiB"                  # of all rings; the largest gives up its oldest first
dedup_entries = 4194304                # publications remembered, at most 80 bytes each, grown as needed
publish_window = 1024                  # publications of one link without an answer yet
publishers = 65536                     # decoded keys kept
answers = 4096                         # answers a link did not read yet
ones_per_link = 64                     # anycast publications that wait for one link
read_bytes = "64MiB"                   # of long frames on their way in, all links together
publication_bytes = 1048000            # the longest publication

[station.doors]                        # connections beyond these are closed before anything is computed for them
handshakes = 1024                      # of TLS, under way
handshakes_per_address = 64            # an IPv4 address, or the first 64 bits of an IPv6 address
links_per_address = 1024               # more where many nodes are behind one address
bound_loopback = false                 # whether the addresses of this host have bounds of their own

[node]                                 # tidings pub and tidings sub --config FILE
stations = ["tcp://127.0.0.1:7400"]    # "tls://NODEID@HOST:7400" as the station prints it; two carry on where one fails
#key = "node.key"                      # made by tidings keygen; without one each run is somebody new
#realm = "example"                     # without it the first segment of the topic or filter
#keys = "group.keys"                   # made by tidings group keygen; what is published under its prefix is sealed
#sources = "sources.toml"              # who are members, and of which organisations, for --from members and org:NAME
probe_every = "30s"
replication_factor = 2                 # stations each publication is handed to, 1 to 16
order_timeout = "2s"                   # how long a missing number is waited for
max_frame = "1MiB"

[node.limits]
links = 16
subscriptions = 1024
lanes = 4096                           # publishers in one topic, of all subscriptions
resting_lanes = 16384                  # those of them that fell silent
dedup_entries = 1048576                # publications remembered, at most 80 bytes each, grown as needed
held_bytes = "256MiB"                  # of publications that wait for their order or their reader
queue_capacity = 1024                  # items before a slow reader is told that it missed some
order_max_buffer = 10000               # facts of one publisher behind a missing one
publish_window = 256                   # publications of one link without an answer yet
tickets = 1024                         # publications on their way out
open_publishers = 256
counters = 65536                       # topics with a numbering
pending_verifications = 1024           # signatures being checked on other cores
publishers = 4096                      # decoded keys kept
answers = 64                           # answers a station did not read yet
groups = 64                            # sealed groups joined, some 110 KB each
group_periods = 96                     # key periods held of one group
group_pulls = 256                      # key periods of one group that were asked for by id
group_publishers = 1024                # publishers of one group whose keys are kept derived

[node.limits.sources]                  # of subscriptions whose publishers are looked up: members, and nodes of an organisation
max_publishers = 4096                  # admitted, or being looked up
held_per_key = 64                      # facts that wait for one lookup
lookups_per_window = 64                # of one realm; half of them for publishers that were admitted before
window_ms = 1000
cache_ttl_ms = 300000                  # how long a publisher stays admitted at most
refresh_margin_ms = 30000              # so long before that it is looked up again
refusal_ttl_ms = 10000                 # how long one stays refused
lookup_timeout_ms = 5000
"#;
