"""Every constant of the wire and of the machines the models believe in.

The models read these attributes each time they need one, so `check.py --sabotage` can change one at a time and see
whether some vector notices. Nothing else in this folder may hold a number of the specification.
"""


class K:
    # Section 1: framing.
    handshake_frame_max = 4096
    max_frame_low = 512
    max_frame_high = 0xFFFFFF
    frame_timeout_ms = 30_000

    # Section 2: the CBOR rule.
    max_items = 131_072
    max_depth = 64
    int_low = -(2**63)
    int_high = 2**63 - 1
    number_high = 2**53 - 1

    # Section 4: ids.
    realm_name_max = 255
    node_id_label = b"TIDINGS-NODE-ID-V1"
    key_id_label = b"TIDINGS-KEY-ID-V1"
    profile = "ed25519"
    alg = "Ed25519"
    id_bytes = 32
    key_bytes = 32
    signature_bytes = 64

    # Section 5: signed objects.
    label_end = b"\x00"
    publication_label = b"TIDINGS-PUBLICATION-V1"
    connect_label = b"TIDINGS-CONNECT-PROOF-V1"
    hello_label = b"TIDINGS-HELLO-PROOF-V1"
    record_label = b"TIDINGS-RECORD-V1"
    request_label = b"TIDINGS-REQUEST-V1"
    reply_label = b"TIDINGS-REPLY-V1"
    grant_label = b"TIDINGS-GRANT-V1"
    object_hash = "sha384"

    # Section 6: publications.
    publication_hash = "sha384"
    seq_low = 1
    epoch_low = 1
    ttl_default_ms = 600_000
    ttl_max_ms = 3_600_000
    skew_ms = 300_000
    ct_min = 16
    seal_nonce_bytes = 12
    seal_key_id_bytes = 8
    seal_schemes = (1, 2)

    # Section 6.1: the event seal.
    seal_scheme = 2
    seal_period_key_bytes = 32
    seal_subkey_bytes = 32
    seal_entropy_bytes = 32
    seal_tag_bytes = 16
    seal_kdf_hash = "sha384"
    seal_nonce_hash = "sha256"
    seal_key_label = b"TIDINGS-EVENT-KEY-V1"
    seal_aad_label = b"TIDINGS-EVENT-AAD-V1"
    seal_no_epoch = 0

    # Section 6.2: groups and key periods.
    keys_accept_ms = 3_900_000
    keys_rotation_low = 60_000
    keys_rotation_high = 86_400_000
    keys_backoff_usual_ms = 300_000
    keys_most = 2
    keys_window = 3
    keys_shortest_part = 30
    keys_backoff_ms = 1_000
    keys_patience_ms = 15_000
    keys_remembered_ms = 3_900_000
    keys_per_publisher = 3
    keys_id_bytes = 8
    keys_secret_bytes = 32
    keys_policies = "off preferred required"

    # Section 7: topics.
    topic_max = 512
    topic_segments = 16
    name_segments = 5
    name_version_high = 4_294_967_295

    # Section 8: handshake.
    version = 1
    version_high = 255
    nonce_bytes = 32
    mesh_bytes = 32
    transcript_hash = "sha384"
    exporter_label = "EXPORTER-tidings-v1"

    # Section 9: frames.
    run_bytes = 8
    probe_bytes = 16
    peer_bytes = 32
    detail_max = 256
    interest_bytes = 16
    id_low = 1

    # Section 11: committed positions.
    untold_ranges = 16
    untold_low = 1
    untold_apart = 2

    # Links: liveness, redial.
    probe_misses = 2
    slept_answer_ms = 5_000
    stuck_intervals = 3
    redial_label = "redial"
    redial_least_ms = 250
    redial_away_ms = 5_000
    redial_most_ms = 30_000
    redial_growth = 3

    # Publishing.
    publish_patience_ms = 5_000
    outcome_order = "unknown refused no_subscriber routed"
    outcome_taken = "no_subscriber routed"

    # Machines: dedup, order, guess, ring, resume, continuity.
    dedup_half = 2
    dedup_quarter = 4
    order_join_ms = 300_000
    order_epochs = 2
    order_two_counters_ms = 60_000
    latest_takeover_facts = 3
    latest_takeover_ms = 10_000
    guess_jump = 10_000
    ring_slack = 0
    ring_first = 1
    resume_linger_ms = 120_000
    resume_end_takes = 1
    resume_oldest = 1
    continuity_linger_ms = 120_000
    continuity_grace_ms = 30_000

    # Sources.
    sources_kept_share = 2
    sources_link_share = 2
    sources_refusals_share = 4
