// SPDX-License-Identifier: Apache-2.0
// Certificates for one test run, made by the openssl command: an authority of our own, and what can be wrong with a
// server's certificate (H75).
#pragma once

#include <string>

namespace holdfast::test {

enum class certificate { good, expired, wrong_host, name_only };

// A directory with ca.pem, tls.pem and tls.key (for 127.0.0.1 and localhost; name_only: localhost alone),
// client.pem and client.key. Made once per process and kind. Each kind has an authority of its own, so another kind's
// ca.pem is an unknown authority.
const std::string& tls_material(certificate kind);

}  // namespace holdfast::test
