// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The stable interface: all headers that a user's program may include. Only the header
// of user relays is left out, as it needs CAF's headers (actors/mail/relay.hpp).
// docs/embedding.md explains the interface.

#include "actors/embedding/training.hpp"
#include "models/data/open_data.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"
#include "schedules/files/schedule_file.hpp"
#include "schedules/program.hpp"
