#!/usr/bin/env python3
"""Campaigns on real engines, on this machine: Slurm with its daemons, Ray, and what of Kubernetes needs no cluster.

`make engines` installs what these tests need, and nothing here is skipped: what is not there fails.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import kubernetes_validate

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
AMKC = os.environ["AMKC"]
MODEL = os.path.join(ROOT, "testdata/models/zoo/llama-gqa")
SEARCH = ("search", MODEL, "--trials", "12", "--cold", "--round", "4")


def trials(campaign):
    """The trials of a campaign: what was asked and what was found, without when and how long."""
    out = []
    with open(os.path.join(campaign, "trials.jsonl"), encoding="utf-8") as file:
        for line in file:
            trial = json.loads(line)
            for key in ("started", "seconds", "previous"):
                del trial[key]
            for key in ("seconds", "signature"):
                del trial["verdict"][key]
            out.append(trial)
    return out


class Engine(unittest.TestCase):
    """A scratch directory with a key and a cache of its own, and amkc in it."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="amkc-engines-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = dict(os.environ, XDG_CONFIG_HOME=self.path("config"), AMKC_CACHE=self.path("cache"), HOME=self.dir,
                        CUDA_VISIBLE_DEVICES="")

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def run_in(self, *args, code=0, **env):
        done = subprocess.run(args, env=dict(self.env, **env), cwd=self.dir, capture_output=True, text=True,
                              timeout=600, check=False)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done.stdout

    def search(self, campaign, *flags):
        return json.loads(self.run_in(AMKC, *SEARCH, "-o", campaign, *flags, "--json"))

    def alone(self):
        """The same campaign, made here."""
        campaign = self.path("alone")
        self.search(campaign)
        return trials(campaign)


class SlurmTest(Engine):
    """A cluster of one node: munged, slurmctld and slurmd, in a directory of their own."""

    def setUp(self):
        super().setUp()
        for name in ("state", "spool", "munge"):
            os.mkdir(self.path(name), 0o700)
        with open(self.path("munge/key"), "wb") as file:
            os.chmod(file.name, 0o600)
            file.write(os.urandom(128))
        host = socket.gethostname().split(".")[0]
        sock = self.path("munge/socket")
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=amkc
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={sock}
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={self.path("state")}
SlurmdSpoolDir={self.path("spool")}
SlurmctldPidFile={self.path("slurmctld.pid")}
SlurmdPidFile={self.path("slurmd.pid")}
SlurmctldPort=16817
SlurmdPort=16818
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES State=UP
PartitionName=gpu Nodes=ALL State=UP
""")
        self.env["SLURM_CONF"] = self.path("slurm.conf")
        self.daemon("munged", "--foreground", "--force", f"--key-file={self.path('munge/key')}", f"--socket={sock}",
                    f"--pid-file={self.path('munge/pid')}", f"--log-file={self.path('munge/log')}",
                    f"--seed-file={self.path('munge/seed')}")
        self.wait(lambda: os.path.exists(sock))
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        self.wait(lambda: "idle" in self.quietly("sinfo", "--noheader"))

    def daemon(self, *args):
        process = subprocess.Popen(args, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end():
            process.terminate()
            process.wait(60)
        self.addCleanup(end)

    def quietly(self, *args):
        return subprocess.run(args, env=self.env, capture_output=True, text=True, check=False).stdout

    def wait(self, there):
        for _ in range(600):
            if there():
                return
            time.sleep(0.1)
        self.fail("the cluster does not come up")

    def test_a_campaign_whose_tasks_and_driver_are_killed(self):
        campaign, made = self.path("camp"), self.path("camp/trials.jsonl")
        flags = ("--jobs", "4", "--via", "srun --quiet --partition=gpu")
        driver = subprocess.Popen([AMKC, *SEARCH, "-o", campaign, *flags], env=self.env, cwd=self.dir,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait(lambda: os.path.exists(made) and os.path.getsize(made))  # the start
        self.wait(lambda: self.quietly("squeue", "--noheader", "--states=RUNNING").strip())
        job = self.quietly("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()[0]
        self.quietly("scancel", "--signal=KILL", "--full", job)  # which is begun again
        before = os.path.getsize(made)
        self.wait(lambda: os.path.getsize(made) > before)
        driver.kill()
        driver.wait(60)
        result = self.search(campaign, *flags)
        self.assertEqual(result["stop"], "12 trials are made")
        self.assertEqual(trials(campaign), self.alone())
        self.run_in(AMKC, "search", "campaign", "verify", campaign)

    def test_cpu_nodes_build_for_a_gpu_that_is_elsewhere(self):
        # There is no GPU to measure with: no verdict, and so no trial. What was built is found by the next run.
        out = self.run_in(AMKC, "search", MODEL, "--trials", "3", "--device", "cuda", "--target", "h100", "-o",
                          self.path("measured"), "--via", "srun --quiet --partition=gpu", "--build-via",
                          "srun --quiet --partition=cpu", "--json", code=2)
        self.assertIn("GPU", out)
        self.assertEqual(trials(self.path("measured")), [])
        builds = [name for name in os.listdir(self.path("cache")) if name != "weights"]  # which builds share
        self.assertEqual(len(builds), 1)
        self.assertIn("megakernel.fatbin", os.listdir(self.path("cache", builds[0])))


class RayTest(Engine):
    def test_a_campaign(self):
        campaign = self.path("camp")
        self.env["RAY_USAGE_STATS_ENABLED"] = "0"
        ray = os.path.join(os.path.dirname(sys.executable), "ray")
        self.run_in(ray, "start", "--head", "--num-cpus=2", "--include-dashboard=false")
        self.addCleanup(subprocess.run, [ray, "stop", "--force"], env=self.env, capture_output=True, check=False)
        self.search(campaign, "--jobs", "2", "--via",
                    f"{sys.executable} {os.path.join(HERE, 'ray_run.py')} --gpus 0")
        self.assertEqual(trials(campaign), self.alone())


KUBECTL = """#!/bin/sh
# What kubectl does for pod.py, with the pod run here.
at='{at}'
case "$1" in
create)
    cat > "$at/pod.$$"
    python3 -c 'import json, subprocess, sys
pod = json.load(open(sys.argv[1]))
done = subprocess.run(pod["spec"]["containers"][0]["command"], stdout=open(sys.argv[1] + ".log", "w"))
open(sys.argv[1] + ".phase", "w").write("Failed" if done.returncode else "Succeeded")' "$at/pod.$$"
    echo "pod.$$" ;;
get) cat "$at/$2.phase" ;;
logs) cat "$at/$2.log" ;;
delete) mv "$at/$3.log" "$at/$3.deleted" ;;
esac
"""


class KubernetesTest(Engine):
    """The pod against the schema of the API, and the commands of pods. No cluster runs here."""

    def test_the_schema(self):
        with open(os.path.join(HERE, "pod.json"), encoding="utf-8") as file:
            pod = json.load(file)
        for version in ("1.29", "1.37"):
            kubernetes_validate.validate(pod, version, strict=True)
        pod["spec"]["restart"] = "Never"
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(pod, "1.37", strict=True)

    def test_the_deployment_of_a_server(self):
        with open(os.path.join(ROOT, "deploy/kubernetes.json"), encoding="utf-8") as file:
            deployment = json.load(file)
        for version in ("1.34", "1.37"):
            kubernetes_validate.validate(deployment, version, strict=True)

    def test_the_pods(self):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/kubectl"), "w", encoding="utf-8") as file:
            file.write(KUBECTL.replace("{at}", self.path("bin")))
        os.chmod(file.name, 0o755)
        self.env["PATH"] = self.path("bin") + os.pathsep + self.env["PATH"]
        campaign = self.path("camp")
        self.search(campaign, "--jobs", "2", "--via", f"{sys.executable} {os.path.join(HERE, 'pod.py')}")
        self.assertEqual(trials(campaign), self.alone())
        pods = [name for name in os.listdir(self.path("bin")) if re.fullmatch(r"pod\.\d+", name)]
        self.assertEqual(len(pods), len(trials(campaign)))
        self.assertEqual(len([name for name in os.listdir(self.path("bin")) if name.endswith(".deleted")]), len(pods))
        for name in pods:
            with open(self.path("bin", name), encoding="utf-8") as file:
                pod = json.load(file)
            kubernetes_validate.validate(pod, "1.37", strict=True)
            self.assertEqual(pod["spec"]["containers"][0]["command"][1:3], ["search", "eval"])


if __name__ == "__main__":
    unittest.main()
