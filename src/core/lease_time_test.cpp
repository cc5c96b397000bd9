// SPDX-License-Identifier: Apache-2.0
#include "core/lease_time.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

__extension__ using wide = __int128;

constexpr clock_drift one_percent{10'000};
constexpr std::int64_t longest_ms = std::int64_t{1} << 42;  // What a reply may say at most (script/reply.cpp).

rc::Gen<std::int64_t> any_ms() { return rc::gen::inRange<std::int64_t>(0, longest_ms + 1); }
rc::Gen<std::int64_t> any_ppm() { return rc::gen::inRange<std::int64_t>(0, 200'001); }

// B19, B60, H10: never more than span x (1 - drift) - 2 ms says, computed without overflow and without rounding; and
// not less by more than one millisecond's drift, or the caution would eat short leases.
TEST(lease_time, usable_is_the_exact_value_rounded_down_B60) {
  EXPECT_TRUE(rc::check("against 128 bits", [] {
    const auto ms = *any_ms();
    const auto ppm = *any_ppm();
    const wide exact_millionths_of_ns = wide{ms} * 1'000'000 * (1'000'000 - ppm) - wide{2'000'000} * 1'000'000;
    const wide got = wide{usable(milliseconds{ms}, clock_drift{ppm}).count()} * 1'000'000;
    RC_ASSERT(got <= std::max<wide>(0, exact_millionths_of_ns));
    RC_ASSERT(got >= exact_millionths_of_ns - wide{ppm} * 1'000'000);
  }));
}

TEST(lease_time, usable_is_never_negative_H9) {
  for (const auto span : {-86'400'000ms, -2ms, -1ms, 0ms, 1ms, 2ms}) {
    EXPECT_EQ(usable(span, one_percent), duration{0}) << span.count();
  }
  EXPECT_TRUE(rc::check("for any span and drift", [] {
    const auto ms = *rc::gen::inRange<std::int64_t>(-longest_ms, longest_ms);
    RC_ASSERT(usable(milliseconds{ms}, clock_drift{*any_ppm()}) >= duration{0});
  }));
}

TEST(lease_time, more_ttl_is_never_less_usable) {
  EXPECT_TRUE(rc::check("monotone in the span", [] {
    const auto ppm = *any_ppm();
    const auto a = *any_ms();
    const auto b = *any_ms();
    const auto shorter = usable(milliseconds{std::min(a, b)}, clock_drift{ppm});
    RC_ASSERT(shorter <= usable(milliseconds{std::max(a, b)}, clock_drift{ppm}));
  }));
}

TEST(lease_time, more_drift_is_never_more_usable) {
  EXPECT_TRUE(rc::check("antitone in the drift", [] {
    const auto ms = *any_ms();
    const auto a = *any_ppm();
    const auto b = *any_ppm();
    const auto careful = usable(milliseconds{ms}, clock_drift{std::max(a, b)});
    RC_ASSERT(careful <= usable(milliseconds{ms}, clock_drift{std::min(a, b)}));
  }));
}

// The figures of docs/lease_time.md.
TEST(lease_time, usable_of_common_ttls_H10) {
  EXPECT_EQ(usable(3ms, one_percent), 960us);
  EXPECT_EQ(usable(100ms, one_percent), 96'990us);
  EXPECT_EQ(usable(1s, one_percent), 987'990us);
  EXPECT_EQ(usable(10s, one_percent), 9'897'990us);
  EXPECT_EQ(usable(24h, one_percent), 24h - 864s - 10us - 2ms);
}

TEST(lease_time, a_deadline_counts_from_the_send_instant_B19) {
  const time_point sent_at{5h};
  EXPECT_EQ(deadline_of(sent_at, 10s, one_percent), sent_at + 9'897'990us);
}

TEST(lease_time, lost_leads_by_a_twentieth_and_at_least_5_ms) {
  EXPECT_EQ(lost_lead(100ms), 5ms);
  EXPECT_EQ(lost_lead(101ms), 5'050us);
  EXPECT_EQ(lost_lead(99ms), 5ms);
  EXPECT_EQ(lost_lead(10s), 500ms);
}

TEST(lease_time, at_risk_leads_by_a_sixth) { EXPECT_EQ(risk_lead(9s), 1500ms); }

TEST(lease_time, renewals_are_a_third_apart_and_at_most_10_s) {
  EXPECT_EQ(renew_period(9s), 3s);
  EXPECT_EQ(renew_period(30s), 10s);
  EXPECT_EQ(renew_period(24h), 10s);
}

TEST(lease_time, renewals_fall_on_common_instants) {
  const time_point at{1h + 1234567us};
  EXPECT_EQ(renewal_instant(at, 30s), time_point{1h + 1230ms});
  EXPECT_EQ(renewal_instant(at, 100ms), time_point{1h + 1234ms});
  EXPECT_EQ(renewal_instant(time_point{1h + 1230ms}, 30s), time_point{1h + 1230ms});
}

TEST(lease_time, a_renewal_is_repeated_after_the_least_of_its_three_bounds) {
  EXPECT_EQ(renew_attempt_timeout(3s, 1h), 500ms);
  EXPECT_EQ(renew_attempt_timeout(3s, 600ms), 200ms);
  EXPECT_EQ(renew_attempt_timeout(1h, 1h), 1s);
  EXPECT_EQ(renew_attempt_timeout(3s, 0s), 1ms) << "zero would repeat without end";
}

TEST(lease_time, a_grant_is_useful_with_30_percent_left_H16) { EXPECT_EQ(least_useful(10s), 3s); }

// Whatever the ttl: with the longest jitter there is time for the renewal and for one repeat of it before the loss.
TEST(lease_time, every_allowed_ttl_leaves_room_for_two_renewals) {
  EXPECT_TRUE(rc::check("100 ms to a day, drift up to the allowed 20 %", [] {
    const milliseconds ttl{*rc::gen::inRange<std::int64_t>(100, 86'400'001)};
    const auto first = renew_period(ttl) + renew_period(ttl) / 10;
    const auto lost = usable(ttl, clock_drift{*any_ppm()}) - lost_lead(ttl);
    RC_ASSERT(first + renew_attempt_timeout(ttl, lost - first) < lost);
    RC_ASSERT(lost_lead(ttl) < risk_lead(ttl));
  }));
}

}  // namespace

}  // namespace holdfast::core
