//! Runs of the simulator that failed once, and what each showed. The number beside a seed is what was drawn from it then: where the draw has
//! changed, a seed stands for another run, and its row is to be replaced by one that shows the same.

#![cfg(feature = "sim")]

use tidings::sim::{Options, drawn, run};

const FAILED: &[(u64, u64, &str)] = &[
    (
        12628,
        0x4f47_c064_e1f4_eca1,
        "more came late from before a join than its order can remember",
    ),
    (
        12631,
        0x139f_7479_9bb6_46b4,
        "a stream ended of itself, and what another had from copies that came before was taken for what came then",
    ),
    (
        15860,
        0x1f3e_7914_ff23_bc8a,
        "a source refused what came before a commit, which is counted and not told: the next run does not owe it",
    ),
    (
        20621,
        0x0828_b530_e490_ffe8,
        "a question about a signature was open when its subscription ended",
    ),
    (
        20698,
        0xd0c6_1140_03ef_d79f,
        "a node slept, and its level was taken from before its sleep",
    ),
    (
        22644,
        0x34e6_de87_e487_e9df,
        "a node was killed within the ten seconds of an episode of full lanes",
    ),
    (
        23707,
        0x9dc5_38d2_441e_ce8a,
        "what the run before had told as unopened was looked for in the next",
    ),
    (
        23998,
        0xdc32_4316_9577_7037,
        "a node was killed within the ten seconds of an episode of facts out of date",
    ),
    (
        24421,
        0xd1c8_94a4_5855_a052,
        "a window began with the last word before a sleep and not with the last that was read",
    ),
    (
        24481,
        0xd825_22d3_72e7_566d,
        "a station wrote the age of a loss as of before its link had blocked",
    ),
    (
        25848,
        0xf0d7_b7dd_ad7a_ec07,
        "one of a row could not be opened, and was looked for behind the next",
    ),
    (
        27366,
        0x5e87_0f4a_ef34_1597,
        "three epochs of one key took turns, and what was skipped of the first was looked for in the third",
    ),
    (
        29657,
        0x2a61_1f5b_d180_01a5,
        "full lanes were not told of yet when their node was killed",
    ),
    (
        29820,
        0x6ccd_96f4_d0eb_6e5c,
        "a lookup found nothing out, and its reader was killed before the episode of what was dropped was over",
    ),
    (
        30322,
        0xdc0e_835a_f4cb_fd49,
        "two subscriptions found the lanes full, and their node was killed before the episodes were over",
    ),
    (
        32302,
        0xa266_41a6_e9d8_302f,
        "an epoch that had been replaced went on",
    ),
    (
        34862,
        0x666e_d2db_48c9_17e7,
        "a restart was told of by the fact that ended its stream",
    ),
    (
        37911,
        0x88c7_2c7f_0814_ce2e,
        "a question was never answered, and its node was killed before it was given up",
    ),
    (
        39062,
        0x9c87_a23d_f1ae_3431,
        "the same, five seconds and a quarter after its fact",
    ),
    (
        39107,
        0xce24_f0b0_b8c2_fada,
        "an order began with what could not be opened, and what came from below it was late",
    ),
    (
        39430,
        0x7bec_7bc5_1a3b_511b,
        "the notices of a pausing stream weigh more than its node may hold",
    ),
    (
        44429,
        0x77ad_3afd_48f1_10a6,
        "one lane for two subscriptions: the second lost every fact, in an episode without an end",
    ),
    (
        44768,
        0x276d_56eb_474d_b934,
        "a wall was ahead by all that is tolerated, and an answer about keys was under way until what it held was over",
    ),
    (
        48752,
        0x5675_f41f_25fb_1f15,
        "a question was open when its reader unsubscribed",
    ),
    (
        49900,
        0xf9d1_0aae_4d5d_efb8,
        "a wall was stepped back before it was told that lives had ended while facts waited for a lookup",
    ),
    (
        49911,
        0x8bc8_2b9c_ad77_41ee,
        "the newest fact waited for an answer when its node was killed",
    ),
    (
        50197,
        0xb6b0_c7bd_1a97_cd9b,
        "an outage began before all that was read of a sleeping node",
    ),
    (
        54420,
        0x2040_7c8f_8104_4fb9,
        "what was dropped without a verdict came again and was late, and its reader was killed before the drop was told",
    ),
    (
        61514,
        0x202c_788c_b9e1_36b4,
        "a node slept for more than an hour, its mono stood still, and it published again what its station had forgotten by then",
    ),
    (
        66287,
        0xb92c_fbc1_546d_4b69,
        "a station at its quota never said whether it goes on from what was committed, and that was not decided",
    ),
    (
        71747,
        0x8e82_8e40_4cf8_d7d9,
        "an epoch whose edge was committed was replaced twice over, and began anew",
    ),
    (
        75087,
        0x55f6_1c9f_6a25_bda3,
        "a node was killed within an episode of facts out of date, and its stream has holes",
    ),
    (
        96500,
        0x4b51_e5ce_d9ed_1a13,
        "a copy came two minutes after its fact was refused, was admitted, and was late",
    ),
    (
        113653,
        0x6bbf_b317_dc6a_b50c,
        "a fact below where its numbering was joined came when the wall said it was not live",
    ),
    (
        201479,
        0x12ef_a1c5_9cd5_cde6,
        "a station slept, its mono stood still, and the loss it told of was younger by the sleep",
    ),
    (
        209447,
        0x78fd_405c_bf30_203c,
        "keys were late after a rotation in a run that commits, and one fact of a row was told as unopened",
    ),
    (
        215365,
        0x0eec_1bd3_8624_95b4,
        "a station refused to go on at its quota: the interruption stayed open, and accounts for what it began with",
    ),
    (
        327453,
        0xb0f3_320f_6890_bee4,
        "a wall stepped back: what was superseded was not live when it came, and was not counted",
    ),
    (
        412112,
        0x3b9a_aa40_736d_ac80,
        "a waking node took all of a link at once, and its stream was seen to end before the rest was",
    ),
    (
        466700,
        0x951d_0fbc_06e1_4545,
        "a node slept for longer than lookups may take, and what waited was refused when it woke",
    ),
    (
        500731,
        0x2ef7_4de9_8fa5_589a,
        "a station was killed behind a slow link, and its node learnt of it long after the calm had begun",
    ),
    (
        506934,
        0xc6bd_a1d0_e788_9207,
        "a loss was told before a suspend and read after it, and mono had stood still meanwhile",
    ),
    (
        535987,
        0x052c_cf41_2915_dad3,
        "a lane waited for a key while four epochs took turns, and had no place to say so for the last",
    ),
    (
        880387,
        0xfe01_2366_3b41_ccd8,
        "a station was given up while a slow reader did not read, and its window was taken to end when that was read",
    ),
    (
        1033974,
        0x5e10_d133_254c_caea,
        "a node slept for less than ten seconds, and a loss of before was read when it woke",
    ),
    (
        1073014,
        0xcc8d_d23d_4639_4959,
        "the calm began with a cut that nobody knew of yet, and the run was over before its link was back",
    ),
    (
        1085295,
        0xc570_ab77_a88c_f87a,
        "what came at the moment of an unsubscribe, and was held then, was taken for what had found nobody",
    ),
    (
        1130166,
        0xfc9a_49a1_f1dc_fe37,
        "a node slept for two seconds, and its window began when it woke",
    ),
    (
        1453677,
        0x1d46_4cff_5e40_085f,
        "a restart was told twice, because a third epoch had come between",
    ),
    (
        1536306,
        0x2af2_baed_4c97_9fd2,
        "a station went away while a node slept for a few seconds, and what it had said before was taken for new",
    ),
    (
        1575824,
        0x588e_cd67_bc46_2641,
        "a second fact of one number was not live by a wall that was stepped back, and stopped at the edge",
    ),
    (
        2001403,
        0x3b55_eb03_9399_fb65,
        "a stream ended of the seventeenth of twenty-four facts of one moment, and the sixteen before were taken for unseen",
    ),
    (
        3057468,
        0x4189_0cf6_743c_bcee,
        "a wall was set forward and back again, which looks like a sleep",
    ),
    (
        3094192,
        0x0277_f6af_2099_1bec,
        "a subscription joined an interruption, and another outage began in it",
    ),
    (
        3388999,
        0x106d_2ba4_a1f8_99fc,
        "a node slept within a handshake, and its window began that much too early",
    ),
    (
        3577388,
        0xa127_612f_4c60_9eab,
        "a gap between meshes began where a window ended that only another subscription of the filter had been told of",
    ),
    (
        3588259,
        0x7206_52f6_8ac0_b689,
        "a stream had ended by itself when another of its filter was made, and stations heard of both at once",
    ),
    (
        4068196,
        0xdc37_4cbb_90aa_6bad,
        "a stream ended of itself with two carriers, and what came behind its end over the second was taken for seen",
    ),
    (
        4503371,
        0xab49_c03e_f45d_1d51,
        "a stream ended of itself, and what came over another subscription of its link was taken for what came over its own",
    ),
    (
        4506640,
        0xfdba_7093_5492_a590,
        "a pausing stream was full when it was committed: what waited behind it had no edge, and was given again",
    ),
    (
        5003407,
        0x4468_d0a8_6cac_a13c,
        "an epoch came back that three others had replaced, and dedup had forgotten what was delivered of it",
    ),
    (
        5082572,
        0xed1b_cbad_90b6_cfc1,
        "a subscription was replaced twice before its station heard of the first time",
    ),
    (
        6010827,
        0xcb30_2d00_7a1d_ec61,
        "a station refused a run that went on from committed positions until the end",
    ),
    (
        6024138,
        0xeb33_889f_2eeb_37ba,
        "a node that woke asked anew before it read the answer to what it had asked before its sleep",
    ),
    (
        6057327,
        0x0eb6_a8a5_0c8f_8b0d,
        "what was dropped had not been told of when positions were committed, and the next run took it for delivered",
    ),
    (
        6200127,
        0x8122_7d94_8022_8a38,
        "late facts waited in the stream when positions were committed",
    ),
    (
        6309971,
        0xcf90_20ca_c87d_6990,
        "a wall was set forward and back again, which looked like a sleep",
    ),
    (
        7315827,
        0xb1dc_9b82_3d8f_2dc2,
        "what lay below the join of one run came in the next, whose commit a third went on from",
    ),
    (
        7429281,
        0xbf6e_d9e5_8716_bfb7,
        "what a slow reader swallowed had told of drops",
    ),
    (
        7515077,
        0x3af7_2019_c7aa_b8f3,
        "a stream ended by itself with what had just come, and had swallowed that: whether it was here before cannot be told",
    ),
    (
        7611680,
        0x4b78_156b_1491_298a,
        "an epoch that others had replaced came back, and what was before its join was taken for a copy",
    ),
    (
        7686267,
        0x7494_5de0_47fa_c1d7,
        "an epoch began anew behind a notice that it was resynced, and what it had delivered before was skipped",
    ),
    (
        8330607,
        0xee8c_93fa_900a_534c,
        "a station that stood for minutes had something for a run that was gone, and refused the next one, which had given it up",
    ),
    (
        9009520,
        0x0f6b_47d5_1189_3d23,
        "a slow link asked for a subscription that had been replaced, and its end was taken for the end of the next",
    ),
    (
        9159067,
        0xb298_3d91_3faf_39a9,
        "a wall was set forward and far back between an acceptance and a commit, which began by both steps early",
    ),
    (
        9201378,
        0x6102_d044_8b19_c480,
        "what came below a join after that had to be given up was late",
    ),
    (
        9212087,
        0x2edc_54b2_62c4_3e9e,
        "what came below a join after that had to be given up was taken for a copy",
    ),
    (
        9232113,
        0xf399_0aa3_779e_f25e,
        "a probe was asked as a silence ended, which was counted to what came after it",
    ),
    (
        9345971,
        0x62da_7e95_0f34_9ae6,
        "a slow link asked again for a subscription that had been replaced, and its end was taken for the end of the next",
    ),
    (
        9423184,
        0x7488_4def_b64d_f63b,
        "what was known of one numbering was given up, and another's late facts had no cause",
    ),
    (
        9263360,
        0x6eaf_8d33_9570_a936,
        "a wall was set forward in one run and far back in the next, whose window began before anything was there",
    ),
    (
        9549981,
        0x0975_5b2c_70ff_39d5,
        "what was known of a numbering was given up, and the first that came after that was held",
    ),
    (
        9569430,
        0xec4d_57ac_09eb_4a46,
        "a stream was left by its reader that had ended for a slow one before, and was not told of what came then",
    ),
    (
        9678360,
        0x9782_ac96_4886_90a4,
        "an epoch that two others had replaced came again, and a memory of 32 had given up what was of it",
    ),
    (
        9747400,
        0xdd84_8e35_791e_49a3,
        "a Resynced was swallowed, and a number that was delivered before it is skipped behind it",
    ),
    (
        9782729,
        0x3b36_166d_5d52_d366,
        "seventeen came late from below a join, and a reader that was too slow saw three of them",
    ),
];

#[test]
fn what_failed_once_holds() {
    for (seed, drew, showed) in FAILED {
        assert_eq!(
            drawn(*seed),
            *drew,
            "seed {seed} is another run now; it showed: {showed}"
        );
        let outcome = run(*seed, &Options::default());
        assert!(
            outcome.broken.is_empty(),
            "seed {seed} ({showed}): {:?}",
            outcome.broken
        );
    }
}
