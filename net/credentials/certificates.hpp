// What this file is for: X.509 as a cluster uses it: made, put into PEM, read back, checked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/credentials/openssl.hpp"

namespace troupe::net {

/// Followed by the name of the cluster or of the node, in a certificate's subject alternative names.
inline constexpr std::string_view cluster_prefix = "urn:troupe:cluster:", node_prefix = "urn:troupe:node:";

/// A key on the curve P-256.
openssl::key make_key();
/// An authority that signs itself, for one cluster.
openssl::certificate make_authority_certificate(EVP_PKEY& own, const std::string& cluster, int days);
/// A member of the authority's cluster. Ends when the authority does if that is less than a day earlier.
openssl::certificate make_member_certificate(EVP_PKEY& own, X509& authority, EVP_PKEY& authority_key,
                                             const std::string& cluster, const std::string& node, int days);

/// The text of a file; empty if OpenSSL cannot give it.
openssl::bio pem_of(X509&);
openssl::bio pem_of(EVP_PKEY&);
std::string_view view_of(BIO&);

/// Reads what stands in a file of that name. Throws `error(bad_argument)` if it is something else.
std::vector<openssl::certificate> read_certificates(const std::string& path);
openssl::key read_private_key(const std::string& path);

/// The rest of each URI that begins so.
std::vector<std::string> names_in(X509&, std::string_view prefix);

/// Throws `error(bad_argument)` if a peer would not accept it: expired, not yet valid, of another authority, not for
/// both ends of a connection. The first is the member's, the others link it to the authorities.
void check_chain(const std::vector<openssl::certificate>& chain, const std::vector<openssl::certificate>& authorities,
                 const std::string& path);

}  // namespace troupe::net
