#!/usr/bin/env python3
"""Writes every family of vectors, and the worked bytes of WIRE.md section 12. Running it twice changes nothing."""

import gen_cbor
import gen_continuity
import gen_flow
import gen_frames
import gen_handshake
import gen_keys
import gen_links
import gen_objects
import gen_order
import gen_outcomes
import gen_resume
import gen_rfc
import gen_seal
import gen_sources
import gen_topics
import worked

FAMILIES = (
    gen_cbor.family,
    gen_objects.ids,
    gen_objects.objects,
    gen_objects.publications,
    gen_seal.family,
    gen_keys.family,
    gen_topics.topics,
    gen_frames.family,
    gen_frames.links,
    gen_handshake.family,
    gen_links.liveness,
    gen_links.backoff,
    gen_outcomes.family,
    gen_topics.positions,
    gen_topics.codes,
    gen_flow.dedup,
    gen_order.family,
    gen_flow.guess,
    gen_flow.ring,
    gen_resume.resume,
    gen_continuity.family,
    gen_sources.family,
    gen_rfc.rfc8032,
    gen_rfc.rfc8949,
)


def main():
    worked.write()
    for make in FAMILIES:
        make().write()


if __name__ == "__main__":
    main()
