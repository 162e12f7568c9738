// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// All that stays: what a program of one's own may include, but for own actors, whose
// header needs CAF's (actors/mail/relay.hpp). docs/embedding.md explains it.

#include "actors/embedding/training.hpp"
#include "models/data/open_data.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"
#include "schedules/files/schedule_file.hpp"
#include "schedules/program.hpp"
