// SPDX-License-Identifier: Apache-2.0
// Which code and which exit status stand for which error of the library. The codes are for ever: scripts know them.
#include "message.hpp"

#include <array>

namespace holdfast::cli {
namespace {

constexpr std::array faults{
    fault_row{errc::invalid_name, "E07", exit_code::usage},
    fault_row{errc::invalid_option, "E08", exit_code::usage},
    fault_row{errc::invalid_uri, "E17", exit_code::usage},
    fault_row{errc::no_server, "E17", exit_code::usage},
    fault_row{errc::used_after_fork, "E21", exit_code::defect},
    fault_row{errc::empty_handle, "E21", exit_code::defect},
    fault_row{errc::timed_out, "E11", exit_code::busy},
    fault_row{errc::cancelled, "E11", exit_code::busy},
    fault_row{errc::cancelled_in_flight, "E20", exit_code::unavailable},
    fault_row{errc::reply_lost, "E20", exit_code::unavailable},
    fault_row{errc::unexpected_reply, "E20", exit_code::unavailable},
    fault_row{errc::lease_expired, "E12", exit_code::lost},
    fault_row{errc::lease_gone, "E12", exit_code::lost},
    fault_row{errc::lease_taken, "E12", exit_code::lost},
    fault_row{errc::lease_broken, "E12", exit_code::lost},
    fault_row{errc::lease_held_too_long, "E12", exit_code::lost},
    fault_row{errc::cannot_resolve, "E01", exit_code::unavailable},
    fault_row{errc::cannot_connect, "E01", exit_code::unavailable},
    fault_row{errc::server_silent, "E01", exit_code::unavailable},
    fault_row{errc::connection_lost, "E01", exit_code::unavailable},
    fault_row{errc::tls_failed, "E13", exit_code::unavailable},
    fault_row{errc::no_password, "E02", exit_code::denied},
    fault_row{errc::wrong_password, "E02", exit_code::denied},
    fault_row{errc::no_permission, "E04", exit_code::denied},
    fault_row{errc::wrong_database, "E03", exit_code::misconfigured},
    fault_row{errc::not_a_primary, "E06", exit_code::misconfigured},
    fault_row{errc::wrong_kind, "E14", exit_code::misconfigured},
    fault_row{errc::wrong_server, "E15", exit_code::misconfigured},
    fault_row{errc::script_mismatch, "E15", exit_code::misconfigured},
    fault_row{errc::fence_too_far, "E08", exit_code::usage},
    fault_row{errc::local_server, "E18", exit_code::unavailable},
    fault_row{errc::server_loading, "E15", exit_code::unavailable},
    fault_row{errc::server_busy, "E15", exit_code::unavailable},
    fault_row{errc::out_of_memory, "E15", exit_code::unavailable},
    fault_row{errc::server_refused, "E15", exit_code::unavailable},
    fault_row{errc::clock_stepped, "E09", exit_code::unavailable},
    fault_row{errc::not_held, "E19", exit_code::busy},
    fault_row{errc::changed_hands, "E19", exit_code::busy},
    fault_row{errc::other_size, "E22", exit_code::misconfigured},
    fault_row{errc::quarantined, "E23", exit_code::unavailable},
    fault_row{errc::not_replicated, "E24", exit_code::unavailable},
    fault_row{errc::no_primary, "E25", exit_code::unavailable},
    fault_row{errc::no_quorum, "E10", exit_code::unavailable},
    fault_row{errc::other_quorum, "E10", exit_code::misconfigured},
};

}  // namespace

std::span<const fault_row> fault_table() { return faults; }

}  // namespace holdfast::cli
