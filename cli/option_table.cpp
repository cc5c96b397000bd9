// SPDX-License-Identifier: Apache-2.0
// The two tables of the command line: commands, and their options. Apart from the parser, so that adding an option
// starts with reading this and nothing else.
#include "options.hpp"

#include <array>

namespace holdfast::cli {
namespace {

constexpr unsigned bits(command c) { return static_cast<unsigned>(c); }

constexpr unsigned takers = bits(command::run) | bits(command::hold);
constexpr unsigned runs = bits(command::run);
constexpr unsigned waits = bits(command::wait);
constexpr unsigned lookers = bits(command::check) | bits(command::show) | bits(command::ls) | bits(command::doctor);
constexpr unsigned breaks = bits(command::break_lock);
constexpr unsigned quorums = bits(command::quorum);
constexpr unsigned resizes = bits(command::resize);
constexpr unsigned servers = takers | waits | lookers | breaks | quorums | resizes | bits(command::init);
constexpr unsigned labs = bits(command::lab);
constexpr unsigned all = servers | labs | bits(command::local);

constexpr std::array options{
    option_row{option::nonblock, 'n', "nonblock", nullptr, takers | waits,
               "do not wait, whatever -w says: exit 75 when somebody else holds it"},
    option_row{option::nonblock, 0, "nb", nullptr, takers | waits, nullptr},
    option_row{option::wait, 'w', "wait", "DUR", takers | waits,
               "wait at most so long; without it, for as long as it takes. A server that was never\n"
               "                                 reached, and has refused three connections, ends it sooner (69)"},
    option_row{option::wait, 0, "timeout", "DUR", takers | waits, nullptr},
    option_row{option::conflict_exit, 'E', "conflict-exit-code", "N", takers | waits,
               "exit N instead of 75 when it is held"},
    option_row{option::quiet_busy, 0, "quiet-busy", nullptr, takers,
               "say nothing when it is held, and exit 0 (or as -E says)"},
    option_row{option::exclusive, 'x', "exclusive", nullptr, takers, "alone, on a name that others take with -s"},
    option_row{option::exclusive, 'e', nullptr, nullptr, takers, nullptr},
    option_row{option::shared, 's', "shared", nullptr, takers, "together with others that take it with -s"},
    option_row{option::limit, 'l', "limit", "N", takers, "one of N at a time; the same N everywhere"},
    option_row{option::shell_command, 'c', "command", "STRING", runs, "run STRING with sh -c"},
    option_row{option::close_lock, 'o', "close", nullptr, takers,
               "accepted for flock's sake; the command never has the lock's socket"},
    option_row{option::no_fork, 'F', "no-fork", nullptr, takers, "refused: somebody has to renew the lease"},
    option_row{option::ttl, 't', "ttl", "DUR", takers, "how long the lock outlives us when we die (10s)"},
    option_row{option::no_renew, 0, "no-renew", nullptr, takers,
               "never renew: the lock ends with its ttl, whatever happens"},
    option_row{option::min_fence, 0, "min-fence", "N", takers,
               "only with a token above N, which a resource has seen already"},
    option_row{option::max_hold, 0, "max-hold", "DUR", takers,
               "lose it after so long, however well it is renewed (no bound)"},
    option_row{option::at_least, 0, "at-least", "DUR", runs,
               "keep it until DUR after it was taken, also when the command ended sooner:\n"
               "                                 for a cron job of several hosts (with -n) whose clocks differ by less "
               "than DUR"},
    option_row{option::on_lost, 0, "on-lost", "term|kill|warn", runs,
               "what to do to the command when the lock is lost (term)"},
    option_row{option::stop_signal, 0, "signal", "SIG", runs, "what to send it first (TERM)"},
    option_row{option::kill_after, 'k', "kill-after", "DUR", runs,
               "KILL it so long after that, a quarter of the ttl at the latest (ttl/4, at most 5s)"},
    option_row{option::foreground, 0, "foreground", nullptr, runs,
               "leave the command in our process group; at a loss it alone is ended, and no child of it"},
    option_row{option::wait_group, 0, "wait-group", nullptr, runs,
               "keep the lock until the command's whole process group has ended"},
    option_row{option::keep_password, 0, "keep-password", nullptr, runs,
               "leave passwords in the command's environment"},
    option_row{option::owner, 0, "owner", "TEXT", takers | breaks, "who, for others to see (user@host:pid command)"},
    option_row{option::why, 0, "why", "TEXT", takers | breaks, "the reason, for others to see"},
    option_row{option::token, 0, "token", "N", breaks, "the token that you saw; a newer holder is left alone"},
    option_row{option::now, 0, "now", nullptr, breaks, "free at once; without it, when the remaining ttl is over"},
    option_row{option::json, 0, "json", nullptr, lookers | labs | quorums | bits(command::local),
               "one JSON document on stdout"},
    option_row{option::quiet, 'q', "quiet", nullptr, all, "no notices and no warnings; errors, and what waits for you"},
    option_row{option::verbose, 0, "verbose", nullptr, all, "say what is being done"},
    option_row{option::uri, 'u', "uri", "URI", servers,
               "the server (HOLDFAST_URI): redis:// rediss:// redis+unix:// redis+sentinel://\n"
               "                                 redis+cluster:// redis+quorum:// local: (holdfast help servers)"},
    option_row{option::prefix, 0, "prefix", "TEXT", servers, "what keys begin with (hf:); the same on every client"},
    // Not of ls: a plain key cannot be told from any other key. A semaphore has none.
    option_row{option::plain, 0, "plain", nullptr, servers & ~bits(command::ls) & ~resizes,
               "NAME is the exact key, shared with other lock libraries"},
    option_row{option::password_file, 0, "password-file", "FILE", servers,
               "read the server's password from FILE (mode 0600)"},
    option_row{option::cacert, 0, "cacert", "FILE", servers, "TLS: the authorities to trust"},
    option_row{option::cert, 0, "cert", "FILE", servers, "TLS: our certificate"},
    option_row{option::key, 0, "key", "FILE", servers, "TLS: our key"},
    option_row{option::server_timeout, 0, "server-timeout", "DUR", servers,
               "give up on a server that is silent so long (5s)"},
    option_row{option::max_ttl, 0, "max-ttl", "DUR", servers,
               "the longest ttl allowed (60s); the same on every client"},
    option_row{option::trust_synced, 0, "trust-every-write-is-synced", nullptr, takers | waits | lookers,
               "grant at once after a restart or a promotion of the server"},
    option_row{option::replicas, 0, "replicas", "K", takers | bits(command::doctor),
               "a grant or a renewal counts only when K replicas have it (0)"},
    option_row{option::replicas_timeout, 0, "replicas-timeout", "DUR", takers | bits(command::doctor),
               "wait so long for them (100ms)"},
    option_row{option::directory, 0, "directory", "DIR", labs,
               "keep its files there; made if missing, else empty. Of `lab stop`: which to end"},
    option_row{option::persistent, 0, "persistent", nullptr, labs,
               "append-only files, so that a node keeps its keys; not of `lab stop`"},
    option_row{option::ready_within, 0, "ready-within", "DUR", labs,
               "give up when it is not ready by then (30s); not of `lab stop`"},
    option_row{option::with, 0, "with", "URI", quorums, "the servers that come instead; generation one more"},
    option_row{option::reopen, 0, "reopen", nullptr, quorums,
               "the old list was open, and its servers have lost their data; the same list may come instead"},
    option_row{option::help, 'h', "help", nullptr, all, "this text"},
};

constexpr std::array commands{
    command_row{command::run, "run", "run [options] NAME [--] CMD [ARG...]",
                "run a command under a lock, as flock(1) does"},
    command_row{command::hold, "hold", "hold [options] NAME",
                "hold a lock until end of input or a signal; prints its token"},
    command_row{command::check, "check", "check [options] NAME",
                "is it free? exit 0, or 75 when somebody holds it or is in line (of a quorum: holds it)"},
    command_row{command::wait, "wait", "wait [options] NAME",
                "until it is free and nobody is in line, without taking it (of a quorum: free)"},
    command_row{command::show, "show", "show [options] NAME", "who holds it, since when, under which token"},
    command_row{command::ls, "ls", "ls [options] [GLOB]", "all locks that are held"},
    command_row{command::break_lock, "break", "break [options] --token N NAME", "end somebody's hold (flock's -u)"},
    command_row{command::resize, "resize", "resize [options] NAME N",
                "a semaphore (-l) has N permits from now on, for everybody; not of a quorum"},
    command_row{command::doctor, "doctor", "doctor [options]", "is this server fit for locks? exit 0 or 78"},
    command_row{command::init, "init", "init [options]",
                "say that the server has forgotten no lock: its first start, or nothing lost"},
    command_row{command::local, "local", "local start|stop|status [DIR]",
                "the private server of this user on this machine"},
    command_row{command::lab, "lab", "lab KIND [N] | lab stop DIR",
                "real servers to try things on: single, replicas, sentinel, cluster, quorum"},
    command_row{command::quorum, "quorum", "quorum replace --with URI",
                "another list of servers for a quorum whose locks are in use"},
    command_row{command::help, "help", "help [TOPIC]", "more about a command, a topic or an error code"},
    command_row{command::version, "version", "version", "the version"},
};

}  // namespace

std::span<const option_row> option_table() { return options; }
std::span<const command_row> command_table() { return commands; }

}  // namespace holdfast::cli
