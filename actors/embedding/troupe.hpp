// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The stable interface: includes the headers that a user's program may include, except
// one. The header of user relays (actors/mail/relay.hpp) is left out, as that header
// needs CAF's headers. docs/embedding.md explains the interface.

#include "actors/embedding/training.hpp"
#include "actors/embedding/training_node.hpp"
#include "models/check_layer.hpp"
#include "models/data/open_data.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"
#include "schedules/files/schedule_file.hpp"
#include "schedules/program.hpp"
